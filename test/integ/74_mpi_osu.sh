#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# 74_mpi_osu.sh - what test/bench/osu makes of its programs: real ones of ours, and
# some that print what is known, so that its medians, ratios and verdicts are too.
src=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=test/lib/tap.sh
. "$src/test/lib/tap.sh"
# shellcheck source=test/lib/mpi.sh
. "$src/test/lib/mpi.sh"
need_mpi
osu=$src/test/bench/osu

"$osu" --prefix "$GLEX_PREFIX" -r 1 --iterations 20 --ways auto,sr,er,shm,tcp --sizes 8:8,65536:65536 --out "$work/results" \
	>"$work/out" 2>"$work/err"
result $? "every shape runs over every way of this MPICH"
rows=$(grep -vc '^#' "$work/results/osu.tsv")
# 10 shapes of two sizes, one of which has two rows a size, the barrier, and MPI_Init; PUT, MP and RAW
[ "$rows" = $((5 * (11 * 2 + 2) + 3)) ]
result $? "each has its rows ($rows)"
grep -Eq '^er +imm_put +[0-9.]+ +[0-9.]+ +-?[0-9.]+ +[0-9.]+$' "$work/out" &&
	grep -Eq '^sr +mp +0\.[0-9]+ ' "$work/out" && grep -Eq '^shm +raw +0\.[0-9]+ ' "$work/out"
result $? "what MPI adds to what it lies on"
# what glex has, against each of the four others, of all sizes of what is in turns
[ "$(grep -c '^# pair' "$work/results/osu.tsv")" = $((3 * 4 * (10 * 2 + 2 + 1))) ]
result $? "and has been compared with each other, turn by turn"
for kind in png svg; do
	[ ! -x "$(command -v gnuplot)" ] || [ -s "$work/results/osu.$kind" ] && [ -s "$work/results/osu_ratio.$kind" ]
	result $? "pictures are drawn: $kind"
done

# turn INDEX: a program of two that take turns, with the words of $work/turns
turn() {
	MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_NEMESIS_NETMOD=glex "$GLEX_PREFIX/bin/mpiexec" -n 2 "$work/shapes" -t latency -m 8:8 -i 400 \
		-T "$1/2/$work/turns" >"$work/out.$1" 2>"$work/err.$1"
}
"$GLEX_PREFIX/bin/mpicc" -std=c11 -D_GNU_SOURCE -I"$src" -I"$src/libglex/tools" -o "$work/shapes" \
	"$src/test/bench/mpi_shapes.c" "$src/test/bench/turns.c" "$src/libglex/tools/perf_base.c" >"$work/out" 2>&1
result $? "mpi_shapes is built"
printf '\0\0\0\0' >"$work/turns"
turn 1 &
turn 0 && wait $! && grep -q '^8 ' "$work/out.0" && grep -q '^8 ' "$work/out.1"
result $? "two programs take turns"
# a first turn, 40 parts, what it came to: of each
[ "$(od -An -tu4 "$work/turns" | tr -d ' ')" = 84 ]
result $? "as often as one another"
printf '\0\0\0\0' >"$work/turns"
turn 0 &
sleep 1
printf '\377\377\377\377' 1<>"$work/turns"
! wait $! && grep -q "that this one takes turns with has ended" "$work/err.0"
result $? "where one has ended, the other does too"
turn 2
[ $? = 2 ] && grep -q "^usage: " "$work/err.2"
result $? "there is no third of two"

# An Open MPI that is there, but cannot run.
mkdir "$work/fake"
cat >"$work/fake/mpicc.openmpi" <<'END'
#!/bin/sh
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\n' >"$2"
chmod +x "$2"
END
printf '#!/bin/sh\necho no network; exit 1\n' >"$work/fake/mpiexec.openmpi"
chmod +x "$work"/fake/*
PATH=$work/fake:$PATH "$osu" --prefix "$GLEX_PREFIX" -r 2 --iterations 20 --tests latency --ways auto,openmpi --sizes 8:8 >"$work/out" \
	2>"$work/err" && says "no network" err && says "openmpi cannot do latency here: left out" err &&
	[ "$(grep -c "left out" "$work/err")" = 1 ] && grep -Eq '^ +8 +[0-9.]+ +- ' "$work/out"
result $? "what cannot take part is left out, and the others are measured"

# known NAME: a program that knows what it has to say; the way tells by its variables
known() {
	cat >"$work/folder/osu_$1"
	chmod +x "$work/folder/osu_$1"
}
mkdir "$work/folder"
known latency <<'END'
#!/bin/sh
[ "$PMI_RANK" = 0 ] || exit 0
echo "# OSU MPI Latency Test"
echo "# Size          Latency (us)"
case ${GLEX_MPI_CHANNEL:-shm} in
auto) echo "8   2.00" ;;
shm) echo "8   1.00" ;;
er) echo "8   1.20" ;;
esac
END
known mbw_mr <<'END'
#!/bin/sh
[ "$PMI_RANK" = 0 ] || exit 0
echo "# Size                  MB/s        Messages/s"
case ${GLEX_MPI_CHANNEL:-shm} in
auto) echo "8   80.00  10000000.00" ;;
shm) echo "8   40.00   5000000.00" ;;
er) echo "8   60.00   7500000.00" ;;
esac
END
known barrier <<'END'
#!/bin/sh
[ "$PMI_RANK" = 0 ] || exit 0
echo "# Avg Latency(us)"
case ${GLEX_MPI_CHANNEL:-shm} in
auto) echo "             3.00" ;;
*) echo "             6.00" ;;
esac
END
known init <<'END'
#!/bin/sh
[ "$PMI_RANK" = 0 ] || exit 0
echo "# OSU MPI Init Test"
case ${GLEX_MPI_CHANNEL:-shm} in
auto) echo "nprocs: 2, min: 8 ms, max: 10 ms, avg: 9 ms" ;;
*) echo "nprocs: 2, min: 30 ms, max: 40 ms, avg: 36 ms" ;;
esac
END
"$osu" --prefix "$GLEX_PREFIX" -r 3 --tests latency,mbw_mr,barrier,init --ways auto,er,shm --sizes 8:8 --strict "$work/folder" \
	>"$work/out" 2>"$work/err"
[ $? = 1 ]
result $? "a target that is missed is the exit status, where that is asked for"
grep -Eq '^ +8 +2.000 +1.200 +1.000 +0.50 +0.50 +shm$' "$work/out"
result $? "a latency and its ratio"
grep -q "er to the immediate PUT" "$work/out"
[ $? = 1 ]
result $? "nothing is said of what was not asked for"
grep -Eq '^ +8 +10.000 +7.500 +5.000 +2.00 +2.00 +shm$' "$work/out"
result $? "a rate and its ratio"
grep -Eq '^ +3.000 +6.000 +6.000 +2.00 +2.00 +shm$' "$work/out"
result $? "a barrier and its ratio"
grep -Eq '^ +9000.0 +36000.0 +36000.0 +4.00 +4.00 +shm$' "$work/out"
result $? "the time of MPI_Init and its ratio"
grep -Eq '^latency 8 B, er against shm +0.80 +0.83 +met$' "$work/out" &&
	grep -Eq '^latency, auto against the better of sr and er +0.95 +0.60 +MISSED$' "$work/out"
result $? "what is met and what is missed"

tab=$(printf '\t')
sed "s/ /$tab/g" >"$work/tsv" <<'END'
endpoint 8 us imm_put 0.5 0.5 0.5
endpoint 8 us mp 0.5 0.5 0.5
endpoint 8 us raw 0.4 0.4 0.4
latency 8 us er 1.1 1.1 1.1
latency 8 us sr 1.6 1.6 1.6
latency 8 us shm 0.9 0.9 0.9
END
awk -F '\t' -v ways="sr er shm" "function raw_heading(rounds) { }$(cat "$src/test/bench/osu_table.awk")" "$work/tsv" >"$work/out"
grep -Eq '^er +imm_put +0.500 +1.100 +0.600 +2.20$' "$work/out" &&
	grep -Eq '^added to 8 B, er to the immediate PUT, shm to RAW +0.80 +0.83 +met$' "$work/out" &&
	grep -Eq '^added to 8 B, sr to the MP, shm to RAW +0.57 +0.45 +MISSED$' "$work/out"
result $? "what MPI adds to the endpoint, against what it adds to shared memory"

sed "s/_/$tab/g" >>"$work/tsv" <<'END'
# pair_latency_8_er_shm_0.70
# pair_latency_8_er_sr_1.50
END
awk -F '\t' -v ways="sr er shm" "function raw_heading(rounds) { }$(cat "$src/test/bench/osu_table.awk")" "$work/tsv" >"$work/out"
grep -Eq '^latency 8 B, er against shm +0.80 +0.70 +MISSED$' "$work/out" &&
	grep -Eq '^latency 8 B, sr against shm +0.62 +0.56 +MISSED$' "$work/out"
result $? "of what was in turns their ratio counts"

"$osu" --prefix "$work" >"$work/out" 2>"$work/err"
[ $? = 1 ] && says "bin/mpicc: give --prefix of an MPICH with the glex netmod" err
result $? "a prefix without MPICH"
"$osu" --prefix "$GLEX_PREFIX" --tests pingpong >"$work/out" 2>"$work/err"
[ $? = 1 ] && says "there is no test pingpong: endpoint latency" err
result $? "a test that there is not"
"$osu" --prefix "$GLEX_PREFIX" --ways auto "$work/none" >"$work/out" 2>"$work/err"
[ $? = 1 ] && says "there is no folder" err
result $? "a folder that there is not"
"$osu" --prefix "$GLEX_PREFIX" --tests bibw --ways auto,shm "$work/folder" >"$work/out" 2>"$work/err"
[ $? = 1 ] && says "there is no osu_bibw for it" err && says "nothing to measure" err
result $? "a folder without the program"
finish
