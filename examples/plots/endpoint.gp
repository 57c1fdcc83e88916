# SPDX-License-Identifier: BSD-2-Clause
#
# endpoint.gp - latency and bandwidth of the endpoint interface over message size.
#
#   gnuplot -e "tsv='endpoint.tsv'; picture='endpoint.png'" endpoint.gp
#
# tsv is what test/bench/endpoint.sh writes; picture ends in .png or .svg.

if (!exists("tsv")) tsv = "endpoint.tsv"
if (!exists("picture")) picture = "endpoint.png"

if (picture[strlen(picture) - 3:] eq ".svg") {
	set terminal svg size 1300,560 font "sans,13" background "white"
} else {
	set terminal pngcairo size 1300,560 font "sans,11" background "white"
}
set output picture

put_colour = "#c1272d"
get_colour = "#e08214"
uct_colour = "#0f5e9c"
fi_colour = "#7a7a7a"
private_colour = "#6a3d9a"
huge_colour = "#1b7837"
set style line 1 lc rgb put_colour lw 2.5 pt 7 ps 0.8
set style line 2 lc rgb get_colour lw 2 pt 5 ps 0.7
set style line 3 lc rgb uct_colour lw 2 pt 9 ps 0.9
set style line 4 lc rgb fi_colour lw 2 pt 11 ps 0.9
set style line 5 lc rgb private_colour lw 2 pt 5 ps 0.7
set style line 6 lc rgb huge_colour lw 2 pt 13 ps 0.9
set style line 11 lc rgb put_colour lw 1.2 dt 2
set style line 15 lc rgb private_colour lw 1.2 dt 2
set style line 16 lc rgb huge_colour lw 1.2 dt 2

set border 3 lc rgb "#404040"
set tics nomirror textcolor rgb "#404040"
set grid xtics ytics lt 1 lw 1 lc rgb "#e8e8e8"
set logscale x 2
set logscale y 10
set xtics ("8" 8, "64" 64, "512" 512, "4K" 4096, "32K" 32768, "256K" 262144, "1M" 1048576, "4M" 4194304)
set format y "%g"
set xlabel "message size, bytes"
set key reverse Left samplen 2 spacing 1.1

series(kind, name) = "< awk -F '\t' '$1 == \"" . kind . "\" && $2 == \"" . name . "\" { print $3, $4 }' '" . tsv . "'"
raw = real(system("awk -F '\t' '$1 == \"raw\" { print $4 }' '" . tsv . "'"))

set multiplot layout 1,2 margins 0.065,0.985,0.13,0.87 spacing 0.09
set label 1 sprintf("GLEX endpoints between two processes of one machine  (RAW %.0f ns)", raw * 1e3) \
	at screen 0.5,0.955 center font ",12"

set title "latency (us): lower is better" font ",11"
set yrange [raw / 4:]
set key top left
plot series("latency", "PUT") with linespoints ls 1 title "PUT, polled", \
     series("latency", "GET") with linespoints ls 2 title "GET, idle memory", \
     series("latency", "UCT put") with linespoints ls 3 title "UCT posix put", \
     series("latency", "libfabric shm") with linespoints ls 4 title "libfabric shm", \
     raw with lines ls 11 title "RAW"

unset label 1
set yrange [1:]
set title "bandwidth (GB/s): higher is better; dashed: the machine's limit" font ",11"
set key bottom left
plot series("bandwidth", "PUT, mapped") with linespoints ls 1 title "PUT, mapped", \
     series("bandwidth", "memcpy") with lines ls 11 title "memcpy", \
     series("bandwidth", "PUT, 4 KiB pages") with linespoints ls 5 title "PUT, attach, 4 KiB pages", \
     series("bandwidth", "attach, 4 KiB pages") with lines ls 15 notitle, \
     series("bandwidth", "PUT, huge pages") with linespoints ls 6 title "PUT, attach, huge pages", \
     series("bandwidth", "attach, huge pages") with lines ls 16 notitle, \
     series("bandwidth", "UCT put") with linespoints ls 3 title "UCT posix put"
unset multiplot
