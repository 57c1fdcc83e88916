# SPDX-License-Identifier: BSD-2-Clause
#
# mpi_compare.gp - latency and bandwidth over message size, three ways, side by side.
#
#   gnuplot -e "tsv='mpi_compare.tsv'; picture='mpi_compare.png'" mpi_compare.gp
#
# tsv is what test/bench/mpi_compare.sh writes; picture ends in .png or .svg.

if (!exists("tsv")) tsv = "mpi_compare.tsv"
if (!exists("picture")) picture = "mpi_compare.png"

if (picture[strlen(picture) - 3:] eq ".svg") {
	set terminal svg size 1300,560 font "sans,13" background "white"
} else {
	set terminal pngcairo size 1300,560 font "sans,11" background "white"
}
set output picture
set datafile separator "\t"
set datafile missing "NaN"

glex_colour = "#c1272d"
shm_colour = "#0f5e9c"
tcp_colour = "#7a7a7a"
set style line 1 lc rgb glex_colour lw 2.5 pt 7 ps 0.8
set style line 2 lc rgb shm_colour lw 2 pt 5 ps 0.7
set style line 3 lc rgb tcp_colour lw 2 pt 9 ps 0.9

set border 3 lc rgb "#404040"
set tics nomirror textcolor rgb "#404040"
set grid xtics ytics lt 1 lw 1 lc rgb "#e8e8e8"
set logscale x 2
set logscale y 10
set xtics ("8" 8, "64" 64, "512" 512, "4K" 4096, "32K" 32768, "256K" 262144, "2M" 2097152, "16M" 16777216)
set xrange [:] noextend
set format y "%g"
set xlabel "message size, bytes"
set key reverse Left samplen 2 spacing 1.2

of(test, column) = strcol(1) eq test ? column : NaN

set multiplot layout 1,2 margins 0.065,0.985,0.13,0.87 spacing 0.09
awk(program) = system("awk -F '\t' '" . program . "' '" . tsv . "'")
raw = real(awk("$1 == \"# raw_ns\" { print $2 }"))
rates = awk("$1 == \"rate\" { printf \"8-byte messages: glex %.1f, shm %.1f, tcp %.1f M/s; \", $4, $7, $10 }")
title = sprintf("MPI between two processes of one machine  (%sRAW %.0f ns)", rates, raw)
set label 1 title at screen 0.5,0.955 center font ",12"

set title "latency, one way (us): lower is better" font ",11"
set key top left
plot tsv using 2:(of("latency", $4)) with linespoints ls 1 title "glex netmod", \
     tsv using 2:(of("latency", $7)) with linespoints ls 2 title "shared memory", \
     tsv using 2:(of("latency", $10)) with linespoints ls 3 title "tcp netmod"

unset label 1
set title "bandwidth, window of 64 (GB/s): higher is better" font ",11"
set key bottom right
plot tsv using 2:(of("bandwidth", $4) / 1e3) with linespoints ls 1 title "glex netmod", \
     tsv using 2:(of("bandwidth", $7) / 1e3) with linespoints ls 2 title "shared memory", \
     tsv using 2:(of("bandwidth", $10) / 1e3) with linespoints ls 3 title "tcp netmod"
unset multiplot
