#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# endpoint.sh - the endpoint interface beside the limits of the machine and
# beside others, measured in turns:
#
#   glex     glex_perf, which measures each row's limit right beside it
#   uct      ucx_perftest over posix shared memory, at UCT level
#   fi       fi_pingpong over libfabric's shm provider
#
# At each size a run of each, one right after the other, then the next round; what was
# measured while the processors were nearer or farther than usual is measured again.  What
# counts is the median over the rounds; of a figure beside another's, the ratio of
# the two: virtual processors move, in the middle of a run, and of single ratios
# twice as many are worth nothing.  What is not installed is left out; a row whose
# figure is missing for any other reason is not met.  Nobody
# reads the data of put_bw, get_bw and put_lat, here and there.
set -u
LC_ALL=C
export LC_ALL

prog=endpoint.sh
here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$here/../..
# shellcheck source=test/bench/lib.sh
. "$here/lib.sh"

usage()
{
	cat <<END
usage: $prog [options]

  --build DIR    a build folder, whose glex_perf and glexd are measured
  --prefix DIR   where libglex is installed (default: what PATH finds)
  -r N           rounds (5)
  --quick        2 rounds, few sizes
  --json FILE    write one JSON object a row of the table there
  --out DIR      write endpoint.tsv, and with gnuplot endpoint.png and .svg, there
  --strict       exit status 1 when a row is missed
END
}

# ---- options -----------------------------------------------------------------

bin=
glexd=
rounds=5
json=
out=
strict=0
sizes="8 64 512 4096 32768 262144 1048576"
short_sizes=4K,16K
bw_sizes=64K,256K,1M,4M
attach_sizes=64K,256K,1M,4M

while [ $# -gt 0 ]; do
	option=$1
	shift
	case $option in
	--strict) strict=1; continue ;;
	--quick)
		rounds=2
		sizes="8 4096 262144"
		short_sizes=4K
		bw_sizes=64K,1M
		attach_sizes=64K,1M
		continue
		;;
	-h | --help) usage; exit 0 ;;
	esac
	[ $# -gt 0 ] || { usage >&2; exit 2; }
	case $option in
	--build) bin=$1/libglex/tools glexd=$1/emulator/glexd/glexd ;;
	--prefix) bin=$1/bin glexd=$1/bin/glexd ;;
	-r) rounds=$1 ;;
	--json) json=$1 ;;
	--out) out=$1 ;;
	*) usage >&2; exit 2 ;;
	esac
	shift
done
case $rounds in
'' | *[!0-9]* | 0) usage >&2; exit 2 ;;
esac
perf=${bin:+$bin/}glex_perf
: "${glexd:=glexd}"
for tool in "$perf" "$glexd"; do
	command -v "$tool" >/dev/null || die "there is no $tool: give --build or --prefix"
done

# ---- processes ---------------------------------------------------------------

work=$(mktemp -d) || exit 1
mark=$(basename "$work")
glexd_pid=
server=
client=

end()
{
	# shellcheck disable=SC2048,SC2086 # numbers, or nothing
	[ -z "$*" ] || kill -9 $* 2>/dev/null
}

cleanup()
{
	end "$client" "$server" "$glexd_pid"
	rm -rf "$work"
}
trap cleanup EXIT
trap 'clear_line; exit 130' HUP INT TERM

# One of our own, so that we know whose idleness is measured.
start_glexd()
{
	GLEX_SOCKET=@$mark
	export GLEX_SOCKET
	"$glexd" --socket "$GLEX_SOCKET" >"$work/glexd" 2>&1 &
	glexd_pid=$!
	tries=0
	until grep -q "@$mark\$" /proc/net/unix; do
		tries=$((tries + 1))
		if [ $tries -gt 100 ] || ! kill -0 "$glexd_pid" 2>/dev/null; then
			cat "$work/glexd" >&2
			die "glexd does not start"
		fi
		sleep 0.05
	done
}

# The one of lib.sh, from glex_perf: it measures RAW beside whatever else it does
measure_raw()
{
	"$perf" --json -t imm_put_lat -s 8 -n 200 >"$work/out" 2>"$work/err" ||
		{ cat "$work/err" >&2; die "RAW could not be measured"; }
	sed -n 's/.*"raw_ns":\([0-9.]*\).*"busy":\([0-9.]*\).*/raw 8 \1\nbusy - \2/p' "$work/out" >"$work/raw_now"
	raw_ns=$(awk '$1 == "raw" { print $3 }' "$work/raw_now")
	[ -n "$raw_ns" ] || die "glex_perf does not say RAW"
}

# ours ROUND ARGS: lines "ROUND WAY TEST SIZE METRIC VALUE" of what glex_perf prints
ours()
{
	round=$1
	shift
	timeout -k 5 120 "$perf" --json "$@" >"$work/out" 2>"$work/err" ||
		{ cat "$work/err" >&2; die "glex_perf $* failed"; }
	awk -v round="$round" '
	function get(key,   at) {
		at = index($0, "\"" key "\":")
		if (!at)
			return ""
		at = substr($0, at + length(key) + 3)
		sub(/[,}].*$/, "", at)
		gsub(/"/, "", at)
		return at
	}
	function put(metric, value) {
		if (value != "")
			print round, way, test, size, metric, value
	}
	{
		way = get("memory")
		test = get("test")
		size = get("size")
		if (get("unit") != "") {
			put("value", get("value"))
			put("slower", get("slower_percent"))
		} else {
			put("ns", get("lat_us") * 1e3)
			put("Mps", get("rate_Mps"))
			put("MBps", get("bw_MBps"))
			put("per_raw", get("lat_per_raw"))
		}
		if (get("limit") > 0) {
			put("limit", get("limit"))
			put("of_limit", get("of_limit"))
		}
		put("raw", get("raw_ns"))
		put("raw2", get("raw2_ns"))
		put("ring", get("ring_ns"))
	}' "$work/out" >>"$work/got"
}

# The CPU time of all threads of glexd, in ns.
glexd_ns()
{
	cat "/proc/$glexd_pid/task/"*/schedstat | awk '{ ns += $1 } END { printf "%d\n", ns }'
}

# Two clients with open endpoints that do nothing, because they are stopped.
idle()
{
	"$perf" -t mp_lat -n 1000000000 -s 8 >"$work/out" 2>&1 &
	client=$!
	tries=0
	sides=
	while [ $tries -lt 100 ]; do
		sides=$(ps -o pid= --ppid "$client")
		grep -q '^# mp_lat' "$work/out" && break
		tries=$((tries + 1))
		sleep 0.05
	done
	sleep 0.3
	# shellcheck disable=SC2086 # numbers
	kill -STOP $client $sides
	sleep 0.3
	before=$(glexd_ns)
	sleep 2
	after=$(glexd_ns)
	# shellcheck disable=SC2086 # numbers
	end $client $sides
	wait $client 2>/dev/null
	client=
	echo "$1 alloc idle 0 value $(((after - before) / 1000)) 2000000" |
		awk '{ print $1, $2, $3, $4, $5, 100 * $6 / $7 }' >>"$work/data"
}

# ---- the others --------------------------------------------------------------

# shellcheck disable=SC2046 # two numbers
set -- $(first_cores 2)
core0=${1:-0}
core1=${2:-$core0}
port=$((20000 + $$ % 20000))

# pair COMMAND: starts a server at the next port
pair()
{
	port=$((port + 1))
	"$@" >"$work/server" 2>&1 &
	server=$!
}

# meet COMMAND: starts its client until it finds the server; output in out
meet()
{
	tries=0
	until timeout -k 2 20 "$@" >"$work/out" 2>&1; do
		tries=$((tries + 1))
		if [ $tries -ge 20 ] || ! kill -0 "$server" 2>/dev/null; then
			break
		fi
		sleep 0.1
	done
	end "$server"
	wait "$server" 2>/dev/null
	server=
}

# uct ROUND TEST SIZE MESSAGES [OPTIONS]
uct()
{
	round=$1 test=$2 size=$3 messages=$4
	shift 4
	pair taskset -c "$core1" ucx_perftest -p $((port + 1)) -d memory -x posix
	meet taskset -c "$core0" ucx_perftest -f -p "$port" -d memory -x posix -t "$test" -s "$size" -n "$messages" \
		-w $((messages / 10 + 10)) "$@" localhost
	# iterations, median us, average us, overall us, MiB/s average and overall, messages/s average and overall.  It takes
	# the time of each message, and where the counter goes by steps of 10 ns its medians go by 5: the average says how
	# much of half a step is to be added, but has the interruptions in it.
	awk -v who="$round uct $test $size" '
	NF == 8 && $1 ~ /^[0-9]+$/ && $2 ~ /^[0-9.]+$/ {
		most = $2 * 1e3 + 2.5
		print who, "ns", $3 * 1e3 < most ? $3 * 1e3 : most
		print who, "MBps", $6 * 1.048576
		print who, "Mps", $8 / 1e6
	}' "$work/out" >>"$work/got"
}

# How many messages of a size take a tenth of a second or so.
messages_of()
{
	echo "$1" | awk '{ n = 400e6 / ($1 + 4000); printf "%d\n", n < 100 ? 100 : n }'
}

# What ours stands beside comes right after it: the machine may be another in a second.
size_round()
{
	n=$(messages_of "$2")
	ours "$1" -t put_poll_lat,put_lat,get_lat -s "$2"
	[ "$2" -gt 64 ] || ours "$1" -t imm_put_lat,mp_lat -s "$2"
	if command -v ucx_perftest >/dev/null; then
		uct "$1" put_lat "$2" "$n"
		[ "$2" -gt 64 ] || uct "$1" am_lat "$2" "$n"
		[ "$2" -le 64 ] || [ "$2" -gt 8000 ] || uct "$1" am_lat "$2" "$n" -D bcopy
		[ "$2" -lt 4096 ] || uct "$1" put_bw "$2" "$n"
	fi
	! command -v fi_pingpong >/dev/null || fi_pingpong_of "$1" "$2" $((n / 4 + 50))
}

rate_round()
{
	ours "$1" -t mp_rate,imm_put_rate -s 8
	! command -v ucx_perftest >/dev/null || uct "$1" am_bw 8 2000000
}

fi_pingpong_of()
{
	pair taskset -c "$core1" fi_pingpong -p shm -e rdm -I "$3" -S "$2" -B $((port + 1))
	meet taskset -c "$core0" fi_pingpong -p shm -e rdm -I "$3" -S "$2" -P "$port" localhost
	awk -v who="$1 fi pingpong $2" 'NF == 8 && $1 ~ /^[0-9]/ { print who, "ns", $7 * 1e3 }' "$work/out" >>"$work/got"
}

# ---- measuring ---------------------------------------------------------------

# The limits of glex_perf's own rows come with them; sizes of each kind of message.
measure()
{
	find_usual
	round=1
	while [ "$round" -le "$rounds" ]; do
		for size in $sizes; do
			progress "round $round of $rounds: $size bytes"
			settled size_round "$round" "$size"
		done
		progress "round $round of $rounds: rates and the rest"
		settled rate_round "$round"
		# A window is told and answered once, which takes as long as sixty copies of 4 KiB between distant cores.
		settled ours "$round" -W 256 -t put_bw,get_bw,put_bibw -s "$short_sizes"
		settled ours "$round" -t put_bw,get_bw,put_bibw -s "$bw_sizes"
		settled ours "$round" -m malloc -t put_bw,get_bw -s "$attach_sizes"
		settled ours "$round" -m huge -t put_bw,get_bw -s "$attach_sizes"
		settled ours "$round" -t wake_lat,open,ep_mem,rcache_hit,reg_miss
		settled ours "$round" -T normal -t overlap
		progress "round $round of $rounds: idle glexd"
		idle "$round"
		round=$((round + 1))
	done
	clear_line
}

# ---- results -----------------------------------------------------------------

# Medians over the rounds: "WAY TEST SIZE METRIC VALUE"
to_medians()
{
	awk "$awk_median"'
	{
		key = $2 " " $3 " " $4 " " $5
		if (!(key in count))
			order[++keys] = key
		value[key, ++count[key]] = $6
	}
	END {
		for (i = 1; i <= keys; i++) {
			n = count[order[i]]
			for (k = 1; k <= n; k++)
				v[k] = value[order[i], k] + 0
			printf "%s %.6g\n", order[i], median(v, n)
		}
	}' "$work/data" >"$work/medians"
}

# The rows of the table: tab between what, figure, unit, limit, ratio, target, met
to_rows()
{
	awk -v uct="$(command -v ucx_perftest)" -v fi="$(command -v fi_pingpong)" -v peer_sizes="$sizes" '
	BEGIN { installed["uct"] = uct != ""; installed["fi"] = fi != "" }
	{ is[$1, $2, $3, $4] = $5; sizes[$1, $2] = sizes[$1, $2] " " $3 }
	function has(way, test, size, metric) {
		return (way, test, size, metric) in is
	}
	# A row that cannot be made is one that is missed.
	function missing(what, must, aim) {
		row(what, "-", "", "", "", must, aim, 0)
	}
	function row(what, figure, unit, limit, ratio, target, aim, met) {
		printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", what, figure, unit, limit, ratio, target, aim, met ? "met" : "NOT MET"
	}
	# A latency as a multiple of RAW; beside it what a bare line each way takes, and a bare queue.  Where the
	# targets were set UCT took `others` RAW for the same; where it takes more, RAW, one line that both sides
	# write, says less of what a message needs, and a target that is missed is as much higher.
	function latency(what, test, must, aim, other_test, others,   per, theirs, mark) {
		if (!has("alloc", test, 8, "ns")) {
			missing(what, "<= " must, aim)
			return
		}
		per = is["alloc", test, 8, "per_raw"]
		theirs = has("uct", other_test, 8, "ns") ? is["uct", other_test, 8, "ns"] / is["alloc", test, 8, "raw"] : 0
		if (per > must && theirs > others) {
			must = sprintf("%.1f", must * theirs / others)
			mark = "*"
		}
		row(what, sprintf("%.1f", is["alloc", test, 8, "ns"]), "ns",
			sprintf("RAW %.0f, %.0f, %.0f", is["alloc", test, 8, "raw"], is["alloc", test, 8, "raw2"], is["alloc", test, 8, "ring"]),
			sprintf("%.2f", per), "<= " must mark, aim, per <= must)
	}
	# Messages a second; UCT sent `others` million where the target was set.
	function rate(what, test, must, aim, other_test, others,   figure, theirs, mark) {
		figure = is["alloc", test, 8, "Mps"]
		theirs = is["uct", other_test, 8, "Mps"]
		if (figure != "" && figure < must && theirs != "" && theirs < others) {
			must = sprintf("%.1f", must * theirs / others)
			mark = "*"
		}
		number(what, figure, "M/s", ">=", must mark, aim, 1)
	}
	# A figure that must not exceed, or not fall below, a number.
	function number(what, figure, unit, sign, must, aim, digits) {
		if (figure == "") {
			missing(what, sign " " must, aim)
			return
		}
		row(what, sprintf("%." digits "f", figure), unit, "", "", sign " " must, aim,
			sign == "<=" ? figure + 0 <= must + 0 : figure + 0 >= must + 0)
	}
	# Each size of a bandwidth against its limit.
	function bandwidth(what, way, test, limit, must, aim,   list, n, i, ratio) {
		n = split(sizes[way, test], list, " ")
		if (n == 0)
			missing(what, ">= " must, aim)
		for (i = 1; i <= n; i++) {
			if (seen[way, test, list[i]]++)
				continue
			if (!has(way, test, list[i], "of_limit")) {
				missing(sprintf("%s, %s", what, human(list[i])), ">= " must, aim)
				continue
			}
			ratio = is[way, test, list[i], "of_limit"]
			row(sprintf("%s, %s", what, human(list[i])), sprintf("%.2f", is[way, test, list[i], "MBps"] / 1e3), "GB/s",
				sprintf("%s %.2f", limit, is[way, test, list[i], "limit"] / 1e3), sprintf("%.2f", ratio), ">= " must, aim,
				sprintf("%.2f", ratio) + 0 >= must)
		}
	}
	function human(size) {
		return size >= 1048576 ? size / 1048576 " MiB" : size >= 1024 ? size / 1024 " KiB" : size " B"
	}
	# Ours against another, if he is here, at each size that both are measured at.
	function against(what, test, other, other_test, name, size,   metric, ratio, must) {
		if (!installed[other])
			return
		must = test == "mp_rate" ? "> 1" : "<= 1"
		if (test != "mp_rate")
			what = what ", " human(size)
		metric = test == "mp_rate" ? "Mps" : "ns"
		if (!has("alloc", test, size, metric) || !has(other, other_test, size, metric)) {
			missing(what, must, "")
			return
		}
		ratio = sprintf("%.2f", is["alloc", test, size, metric] / is[other, other_test, size, metric]) + 0
		if (test == "mp_rate")
			row(what, sprintf("%.1f", is["alloc", test, size, "Mps"]), "M/s",
				sprintf("%s %.1f", name, is[other, other_test, size, "Mps"]), sprintf("%.2f", ratio), must, "", ratio > 1)
		else
			row(what, sprintf("%.1f", is["alloc", test, size, "ns"]), "ns",
				sprintf("%s %.1f", name, is[other, other_test, size, "ns"]), sprintf("%.2f", ratio), must, "< 1", ratio <= 1)
	}
	function against_at(what, test, other, other_test, name, most,   list, n, i) {
		n = split(peer_sizes, list, " ")
		for (i = 1; i <= n; i++)
			if (list[i] <= most)
				against(what, test, other, other_test, name, list[i])
	}
	END {
		latency("immediate PUT 8 B, event", "imm_put_lat", 1.5, 1.2, "am_lat", 1.3)
		latency("MP 8 B", "mp_lat", 1.5, 1.2, "am_lat", 1.3)
		latency("PUT 8 B, polled", "put_poll_lat", 1.1, 0.9, "put_lat", 0.8)
		number("GET 8 B, idle memory", is["alloc", "get_lat", 8, "ns"], "ns", "<=", 60, 30, 1)
		rate("MP rate", "mp_rate", 30, 80, "am_bw", 20)
		against("MP rate", "mp_rate", "uct", "am_bw", "am_bw", 8)
		number("immediate PUT rate", is["alloc", "imm_put_rate", 8, "Mps"], "M/s", ">=", 40, 90, 1)
		bandwidth("PUT mapped", "alloc", "put_bw", "memcpy", 0.8, 0.95)
		bandwidth("GET mapped", "alloc", "get_bw", "memcpy", 0.8, 0.95)
		bandwidth("PUT both ways", "alloc", "put_bibw", "memcpy", 0.8, 0.95)
		bandwidth("PUT attach, 4 KiB pages", "malloc", "put_bw", "attach", 0.95, "")
		bandwidth("GET attach, 4 KiB pages", "malloc", "get_bw", "attach", 0.95, "")
		bandwidth("PUT attach, huge pages", "huge", "put_bw", "attach", 0.95, "")
		bandwidth("GET attach, huge pages", "huge", "get_bw", "attach", 0.95, "")
		if (has("alloc", "wake_lat", 8, "of_limit"))
			row("wake-up of a sleeper", sprintf("%.1f", is["alloc", "wake_lat", 8, "ns"] / 1e3), "us",
				sprintf("futex %.1f", is["alloc", "wake_lat", 8, "limit"] / 1e3),
				sprintf("%.2f", is["alloc", "wake_lat", 8, "of_limit"]), "<= 1.3", 1.1,
				is["alloc", "wake_lat", 8, "of_limit"] <= 1.3)
		else
			missing("wake-up of a sleeper", "<= 1.3", 1.1)
		number("CPU of the poster, 64 MiB PUT", is["alloc", "overlap", 67108864, "value"], "%", "<=", 5, 1, 2)
		number("idle glexd", is["alloc", "idle", 0, "value"], "% CPU", "<=", 0.1, 0, 3)
		number("registration cache, hit", is["alloc", "rcache_hit", 4096, "value"], "ns", "<=", 30, 15, 1)
		number("memory of an endpoint", is["alloc", "ep_mem", 1, "value"] == "" ? "" : is["alloc", "ep_mem", 1, "value"] / 1024,
			"MiB", "<=", 1.5, "", 2)
		number("open, create, register 1 MiB", is["alloc", "open", 1048576, "value"], "ms", "<=", 1, 0.3, 2)
		against_at("MP against uct am_lat", "mp_lat", "uct", "am_lat", "am", 64)
		against_at("PUT polled against uct put_lat", "put_poll_lat", "uct", "put_lat", "put", 1048576)
		against_at("PUT event against uct am_lat", "put_lat", "uct", "am_lat", "am", 8000)
		against_at("PUT event against fi_pingpong", "put_lat", "fi", "pingpong", "fi", 1048576)
	}' "$work/medians" >"$work/rows"
}

print_table()
{
	raw_lines | awk -F '\t' -v rounds="$rounds" "$awk_raw_heading"'{ raw_heading(rounds) }'
	awk "$awk_median"'
	$5 == "raw2" { raw2[++raw2s] = $6 }
	$5 == "ring" { ring[++rings] = $6 }
	END { printf "a line each way %.1f ns (RAW2), a bare queue %.1f (RING)\n", median(raw2, raw2s), median(ring, rings) }' "$work/data"
	awk -F '\t' '
	BEGIN { printf "\n%-42s %10s %-6s %17s %6s  %-8s %5s\n", "", "figure", "", "beside", "ratio", "must", "aim" }
	{
		printf "%-42s %10s %-6s %17s %6s  %-8s %5s  %s\n", $1, $2, $3, $4, $5, $6, $7, $8
		missed += $8 != "met"
		scaled += $6 ~ /[*]/ && $8 == "met"
	}
	END {
		if (scaled)
			print "* the target is 1.5 RAW where UCT takes 1.3, 1.1 where it takes 0.8, 30 M/s where it sends 20: it is as much slower here"
		printf "\n%d of %d rows met%s\n", NR - missed, NR, scaled ? ", " scaled " of them only as UCT is slower, too" : ""
	}' "$work/rows"
}

write_json()
{
	awk -F '\t' '{
		printf "{\"row\":\"%s\",\"figure\":%s,\"unit\":\"%s\",\"beside\":\"%s\",\"ratio\":%s,\"must\":\"%s\",\"aim\":\"%s\",\"met\":%s}\n",
			$1, $2 == "-" ? "null" : $2, $3, $4, $5 == "" ? "null" : $5, $6, $7, $8 == "met" ? "true" : "false"
	}' "$work/rows" >"$json" || die "cannot write $json"
}

# Figures over size, one line each: kind, series, size, value; latency in us, bandwidth in GB/s.
to_tsv()
{
	awk -v OFS='\t' '
	function lat(series) { print "latency", series, $3, $5 / 1e3 }
	function bw(series) { print "bandwidth", series, $3, $5 / 1e3 }
	$4 == "ns" && $1 " " $2 == "alloc put_poll_lat" { lat("PUT") }
	$4 == "ns" && $1 " " $2 == "alloc get_lat" { lat("GET") }
	$4 == "ns" && $1 " " $2 == "uct put_lat" { lat("UCT put") }
	$4 == "ns" && $1 " " $2 == "fi pingpong" { lat("libfabric shm") }
	$4 == "MBps" && $1 " " $2 == "alloc put_bw" { bw("PUT, mapped") }
	$4 == "limit" && $1 " " $2 == "alloc put_bw" { bw("memcpy") }
	$4 == "MBps" && $1 " " $2 == "malloc put_bw" { bw("PUT, 4 KiB pages") }
	$4 == "limit" && $1 " " $2 == "malloc put_bw" { bw("attach, 4 KiB pages") }
	$4 == "MBps" && $1 " " $2 == "huge put_bw" { bw("PUT, huge pages") }
	$4 == "limit" && $1 " " $2 == "huge put_bw" { bw("attach, huge pages") }
	$4 == "MBps" && $1 " " $2 == "uct put_bw" && $3 >= 4096 { bw("UCT put") }
	' "$work/medians" >"$out/endpoint.tsv"
	awk -v OFS='\t' "$awk_median"'$5 == "raw" { raw[++n] = $6 } END { print "raw", "RAW", 8, median(raw, n) / 1e3 }' \
		"$work/data" >>"$out/endpoint.tsv"
}

draw()
{
	if ! command -v gnuplot >/dev/null; then
		echo "$prog: no picture: gnuplot is not installed" >&2
		return
	fi
	for kind in png svg; do
		gnuplot -e "tsv='$out/endpoint.tsv'; picture='$out/endpoint.$kind'" \
			"$top/examples/plots/endpoint.gp" || die "gnuplot failed"
	done
	echo "picture: $out/endpoint.png (and .svg), figures: $out/endpoint.tsv"
}

start_glexd
measure
to_medians
to_rows
print_table
[ -z "$json" ] || write_json
if [ -n "$out" ]; then
	mkdir -p "$out" || die "cannot write to $out"
	to_tsv
	draw
fi
[ "$strict" -eq 0 ] || ! grep -q "NOT MET" "$work/rows"
