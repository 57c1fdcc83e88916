# SPDX-License-Identifier: BSD-2-Clause
#
# osu_table.awk - osu's figures as tables with ratios, then what they had to reach;
# lib.sh's awk_raw_heading goes before it.
# Exit status: 0 if all that was measured is met, 1 otherwise.
#
# A ratio above 1 is in favour of glex, for times and bandwidths alike.  Where ways took turns it is the median of the
# ratios of all turns, not the ratio of medians.

function known(way, test, size)
{
	return (way, test, size) in value
}

# What counts of it: the median, or the best round.
function measured(way, test, size)
{
	return best_counts ? best[way, test, size] : value[way, test, size]
}

# How much better way is than other: of what was measured in turns, in the median of these
function gain(way, other, test, size,   mine, theirs)
{
	if ((way, other, test, size) in pair)
		return pair[way, other, test, size]
	mine = measured(way, test, size)
	theirs = measured(other, test, size)
	return unit[test] == "us" ? theirs / mine : mine / theirs
}

# How much better way is than the best of list, and in best_way the name of that; "" where none was measured
function gain_on_best(way, list, test, size,   n, i, name, ratio, least)
{
	n = split(list, name, " ")
	least = best_way = ""
	if (!known(way, test, size))
		return least
	for (i = 1; i <= n; i++) {
		if (!known(name[i], test, size) || name[i] == way)
			continue
		ratio = gain(way, name[i], test, size)
		if (least == "" || ratio < least) {
			least = ratio
			best_way = name[i]
		}
	}
	return least
}

function ratio_text(way, list, test, size,   ratio)
{
	ratio = gain_on_best(way, list, test, size)
	return ratio == "" ? "-" : sprintf("%.2f", ratio)
}

function heading(test)
{
	if (unit[test] == "us")
		return test ", us"
	return unit[test] == "Mps" ? test ", million a second" : test ", GB/s"
}

function figure(x, test)
{
	if (unit[test] == "MBps")
		x /= 1000
	return sprintf(x < 100 ? "%.3f" : "%.1f", x)
}

function figure_text(way, test, size)
{
	return known(way, test, size) ? figure(value[way, test, size], test) : "-"
}

function print_test(test,   i, w)
{
	printf "\n%-30s", heading(test)
	for (w = 1; w <= way_count; w++)
		printf " %13s", way_name[w]
	printf "   %8s %8s %8s\n", main "/shm", main "/best", "best is"
	for (i = 1; i <= size_count[test]; i++) {
		printf "%30s", sizes[test, i] + 0 ? sizes[test, i] : ""
		for (w = 1; w <= way_count; w++)
			printf " %13s", figure_text(way_name[w], test, sizes[test, i])
		printf "   %8s %8s %8s\n", ratio_text(main, "shm", test, sizes[test, i]),
			ratio_text(main, peers, test, sizes[test, i]), best_way
	}
}

# A row of print_added: 8 bytes over MPI by way, and what they lie on
function print_added_row(way, beneath,   alone, over)
{
	alone = value[beneath, "endpoint", 8]
	if (!known(way, "latency", 8)) {
		printf "%-13s %-13s %9.3f %9s %9s %9s\n", way, beneath, alone, "-", "-", "-"
		return
	}
	over = value[way, "latency", 8]
	printf "%-13s %-13s %9.3f %9.3f %9.3f %9.2f\n", way, beneath, alone, over, over - alone, over / alone
}

function print_added()
{
	printf "\n%-13s %-13s %9s %9s %9s %9s\n", "8 B, us", "lies on", "alone", "with MPI", "MPI adds", "times"
	print_added_row("er", "imm_put")
	print_added_row("sr", "mp")
	print_added_row("shm", "raw")
}

# The same.  What really is slower is so in its median and in its best round; of runs of the same code that were made one
# after the other noise alone makes the one differ, or the other.
function times_as_good(way, list, test, size,   ratio, best_ratio)
{
	ratio = gain_on_best(way, list, test, size)
	if (!is_same_code || ratio == "")
		return ratio
	best_counts = 1
	best_ratio = gain_on_best(way, list, test, size)
	best_counts = 0
	return best_ratio > ratio ? best_ratio : ratio
}

# The sizes from..to where way has to be at least limit times as good as the best of list.
function judge(what, way, list, test, from, to, limit,   i, size, ratio, worst, at, rival, count, bad)
{
	for (i = 1; i <= size_count[test]; i++) {
		size = sizes[test, i]
		if (size + 0 < from || size + 0 > to)
			continue
		ratio = times_as_good(way, list, test, size)
		if (ratio == "")
			continue
		count++
		bad += ratio < limit
		if (worst == "" || ratio < worst) {
			worst = ratio
			at = size
			rival = best_way
		}
	}
	if (!count)
		return
	missed += bad > 0
	printf "%-60s %5.2f  %5.2f  %s", what, limit, worst, bad ? "MISSED" : "met"
	if (bad && count > 1)
		printf " at %d of %d sizes, worst at %d against %s", bad, count, at, rival
	printf "\n"
}

# What MPI adds to 8 bytes of what way lies on, against what it adds to RAW over shared memory
function judge_added(what, way, beneath, limit,   mine, theirs, bad)
{
	if (!known(way, "latency", 8) || !known("shm", "latency", 8) || !known(beneath, "endpoint", 8))
		return
	mine = value[way, "latency", 8] - value[beneath, "endpoint", 8]
	theirs = value["shm", "latency", 8] - value["raw", "endpoint", 8]
	bad = theirs < limit * mine
	missed += bad
	printf "%-60s %5.2f  %5s  %s\n", what, limit, (mine > 0 ? sprintf("%.2f", theirs / mine) : "-"), bad ? "MISSED" : "met"
}

BEGIN {
	peers = "shm tcp mpich mpich_ucx openmpi openmpi_nocma"
	way_count = split(ways, way_name, " ")
	main = way_name[1]
	for (w = 1; w <= way_count; w++)
		if (way_name[w] == "auto")
			main = "auto"
}

$1 == "# pair" {
	pair[$4, $5, $2, $3] = $6
	next
}

/^#/ {
	raw_heading(rounds)
	next
}

{
	if (!($1 in unit)) {
		unit[$1] = $3
		tests[++test_count] = $1
	}
	if (!(($1, $2) in seen)) {
		seen[$1, $2] = 1
		sizes[$1, ++size_count[$1]] = $2
	}
	value[$4, $1, $2] = $5
	best[$4, $1, $2] = $3 == "us" ? $6 : $7
}

END {
	printf "ratios above 1 are in favour of %s\n", main
	for (t = 1; t <= test_count; t++)
		if (tests[t] != "endpoint")
			print_test(tests[t])
	if (known("raw", "endpoint", 8))
		print_added()
	printf "\n%-60s %5s  %5s\n", "how many times as good", "limit", "is"
	judge("latency 8 B, er against shm", "er", "shm", "latency", 8, 8, 1 / 1.25)
	judge("latency 8 B, sr against shm", "sr", "shm", "latency", 8, 8, 1 / 1.6)
	judge_added("added to 8 B, er to the immediate PUT, shm to RAW", "er", "imm_put", 1 / 1.25)
	judge_added("added to 8 B, sr to the MP, shm to RAW", "sr", "mp", 1 / 1.75)
	judge("latency 64 B to 16 KiB, auto against the best peer", "auto", peers, "latency", 64, 16384, 1 / 1.15)
	judge("latency 64 to 512 KiB, auto against the best peer", "auto", peers, "latency", 65536, 524288, 1.2)
	judge("latency from 1 MiB, auto against the best peer", "auto", peers, "latency", 1048576, 2 ^ 30, 1.0)
	judge("message rate 8 B, auto against shm", "auto", "shm", "mr", 8, 8, 1.0)
	judge("bandwidth 64 B to 32 KiB, auto against the best peer", "auto", peers, "bw", 64, 32768, 0.9)
	judge("bandwidth 64 to 512 KiB, auto against the best peer", "auto", peers, "bw", 65536, 524288, 1.2)
	judge("bandwidth from 1 MiB, auto against the best peer", "auto", peers, "bw", 1048576, 2 ^ 30, 1.0)
	is_same_code = 1
	judge("latency, auto against the better of sr and er", "auto", "sr er", "latency", 1, 2 ^ 30, 1 / 1.05)
	judge("bandwidth, auto against the better of sr and er", "auto", "sr er", "bw", 1, 2 ^ 30, 1 / 1.05)
	is_same_code = 0
	judge("put and flush 8 B, auto against UCX of another MPICH", "auto", "mpich_ucx", "put_latency", 8, 8, 1 / 1.5)
	judge("get and flush 8 B, auto against UCX of another MPICH", "auto", "mpich_ucx", "get_latency", 8, 8, 1 / 1.5)
	judge("barrier, auto against shm", "auto", "shm", "barrier", 0, 0, 1.0)
	judge("MPI_Init, auto against tcp", "auto", "tcp", "init", 0, 0, 1 / 1.2)
	if (missed)
		printf "%d missed\n", missed
	exit missed > 0
}
