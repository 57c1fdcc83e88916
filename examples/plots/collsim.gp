# SPDX-License-Identifier: BSD-2-Clause
#
# collsim.gp - latency of simulated collectives over the number of nodes.
#
#   gnuplot -e "tsv='collectives.tsv'; picture='collectives.svg'" collsim.gp
#
# tsv is what test/bench/collsim.sh writes; picture ends in .png or .svg.

if (!exists("tsv")) tsv = "collectives.tsv"
if (!exists("picture")) picture = "collectives.svg"

if (picture[strlen(picture) - 3:] eq ".svg") {
	set terminal svg size 1440,1080 font "sans,12" background "white"
} else {
	set terminal pngcairo size 1440,1080 font "sans,10" background "white"
}
set output picture

colours = "#0f5e9c #1b9e77 #c1272d #e08214 #6a3d9a"
do for [i = 1:5] {
	set style line i lc rgb word(colours, i) lw 1.8 pt 7 ps 0.35
	set style line (10 + i) lc rgb word(colours, i) lw 1.8 dt (6, 4) pt 6 ps 0.35
}

set border 3 lc rgb "#404040"
set tics nomirror textcolor rgb "#404040"
set grid xtics ytics lt 1 lw 1 lc rgb "#e8e8e8"
set logscale x 2
set xrange [2:70000]
set yrange [0:*]
set xtics ("2" 2, "16" 16, "128" 128, "1K" 1024, "8K" 8192, "64K" 65536)
set key top left Left reverse samplen 2 spacing 1.1 font ",10"

# Columns: sweep machine test way shape degree nodes processes depth us ...
rows(condition) = "< awk -F '\t' '" . condition . " { print $7, $10, $8 }' '" . tsv . "' | sort -n"
of(sweep, test, way, degree) = rows("$1 == \"" . sweep . "\" && $3 == \"" . test . "\" && $4 == \"" . way . \
	"\" && $6 == " . degree)
hidden(way, degree) = "< awk -F '\t' '$1 == \"kary\" && $4 == \"" . way . "\" && $6 == " . degree . \
	" { print $7, $16 }' '" . tsv . "' | sort -n"
# For each number of nodes the tree that suits best.
best(sweeps, way) = "< awk -F '\t' '$1 ~ /^(" . sweeps . ")$/ && $4 == \"" . way . \
	"\" { if (!($7 in us) || $10 < us[$7]) { us[$7] = $10; of[$7] = $8 } } " . \
	"END { for (n in us) print n, us[n], of[n] }' '" . tsv . "' | sort -n"
noise(way) = "< awk -F '\t' '$1 ~ /^noise/ && $4 == \"" . way . "\" { print n++, $10, substr($1, 6) * 100 }' '" . tsv . "'"

set multiplot layout 3,3 margins 0.04,0.99,0.055,0.955 spacing 0.045,0.095
set title "allreduce by NICs, k-ary trees (th2), us"
plot for [k in "2 4 8 16 32"] of("kary", "allreduce", "nic", k) with linespoints ls (int(log(k) / log(2) + 0.5)) title "degree ".k
set title "allreduce by NICs, k-nomial trees (th2), us"
plot for [k in "2 4 8"] of("knomial", "allreduce", "nic", k) with linespoints ls (int(log(k) / log(2) + 0.5)) title "degree ".k
set title "allreduce, the best tree for each (th2), us"
plot best("kary|knomial", "host") with linespoints ls 11 title "by hosts", best("kary|knomial", "nic") with linespoints ls 1 title "by NICs"
set title "barrier and broadcast, k-ary, degree 16 (th2), us"
plot of("tests", "barrier", "host", 16) with linespoints ls 13 title "barrier by hosts", \
	of("tests", "barrier", "nic", 16) with linespoints ls 3 title "by NICs", \
	of("tests", "bcast", "host", 16) with linespoints ls 14 title "broadcast by hosts", \
	of("tests", "bcast", "nic", 16) with linespoints ls 4 title "by NICs"
do for [size in "64K 1M"] {
	set yrange [0:(size eq "1M" ? 1700 : 140)] # room for the key
	set title "broadcast of ".size[1:strlen(size) - 1]." ".(size eq "1M" ? "MiB" : "KiB").", k-ary (th2), us"
	plot for [k in "1 2 4 8"] of("long".size, "bcast", "host", k) with linespoints ls (11 + int(log(k) / log(2) + 0.5)) notitle, \
		for [k in "1 2 4 8"] of("long".size, "bcast", "nic", k) with linespoints ls (1 + int(log(k) / log(2) + 0.5)) title \
			(k eq "1" ? "by NICs (dashed: by hosts), a chain" : "degree ".k)
}
set yrange [0:160] # as before
set title "share of an allreduce that computing hides (th2), %"
plot for [k in "2 4 8 16"] hidden("host", k) with linespoints ls (10 + int(log(k) / log(2) + 0.5)) notitle, \
	for [k in "2 4 8 16"] hidden("nic", k) with linespoints ls int(log(k) / log(2) + 0.5) title \
		(k eq "2" ? "by NICs (dashed: by hosts), degree 2" : "degree ".k)
set yrange [0:*]
set title "allreduce over processes, 16 a node (aries), us"
set xrange [32:1100000]
set xtics ("32" 32, "256" 256, "2K" 2048, "16K" 16384, "128K" 131072, "1M" 1048576)
set arrow 1 from 12000, graph 0 to 12000, 10 nohead lc rgb "#808080" dt 3
set arrow 2 from 32, 10 to 12000, 10 nohead lc rgb "#808080" dt 3
set label 1 "published: below 10 us" at 40, 10 offset 0, 0.5 font ",9" textcolor rgb "#606060"
plot best("aries", "host") using 3:2 with linespoints ls 11 title "by hosts, the best degree", \
	of("aries", "allreduce", "nic", 2) using 3:2 with linespoints ls 1 title "by NICs, degree 2", \
	of("aries", "allreduce", "nic", 32) using 3:2 with linespoints ls 5 title "degree 32"
unset arrow
unset label
unset logscale x
set title "barrier of 4,096 nodes with noise of 5 us (th2), us"
set xrange [-0.3:3.3]
set xtics ("none" 0, "0.1 %%" 1, "1 %%" 2, "10 %%" 3)
plot noise("host") using 1:2 with linespoints ls 11 title "by hosts", noise("nic") using 1:2 with linespoints ls 1 title "by NICs"
unset multiplot
