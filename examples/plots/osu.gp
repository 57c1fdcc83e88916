# SPDX-License-Identifier: BSD-2-Clause
#
# osu.gp - every shape of test/bench/osu over message size, a panel each.
#
#   gnuplot -e "tsv='osu.tsv'; picture='osu.png'; ways='auto shm tcp'" osu.gp
#
# tsv is what test/bench/osu writes; picture ends in .png or .svg.  With ratio=1 each
# way is drawn as a multiple of shared memory, above 1 where it is better.

if (!exists("tsv")) tsv = "osu.tsv"
if (!exists("picture")) picture = "osu.png"
if (!exists("ways")) ways = "auto shm tcp"
if (!exists("ratio")) ratio = 0

if (picture[strlen(picture) - 3:] eq ".svg") {
	set terminal svg size 1500,1100 font "sans,12" background "white"
} else {
	set terminal pngcairo size 1500,1100 font "sans,10" background "white"
}
set output picture

all = "auto sr er shm tcp mpich mpich_ucx openmpi openmpi_nocma"
colours = "#c1272d #e08214 #6a3d9a #0f5e9c #7a7a7a #1b7837 #7fbf7b #b15928 #cab2d6"
number_of(way) = sum [i = 1:words(all)] (word(all, i) eq way ? i : 0)
do for [i = 1:words(all)] {
	set style line i lc rgb word(colours, i) lw (i == 1 ? 2.5 : 1.5) pt 7 ps (i == 1 ? 0.6 : 0.4)
}

set border 3 lc rgb "#404040"
set tics nomirror textcolor rgb "#404040"
set grid xtics ytics lt 1 lw 1 lc rgb "#e8e8e8"
set logscale x 2
set logscale y 10
set xtics ("1" 1, "64" 64, "4K" 4096, "256K" 262144, "4M" 4194304)
set format y "%g"
unset key

# A way's rows of a shape; as a ratio, joined with those of shared memory by size.
values(test, way) = "< awk -F '\t' '$1 == \"" . test . "\" && $4 == \"" . way . "\" { print $2, $5 }' '" . tsv . "'"
ratios(test, way) = "< awk -F '\t' '$1 == \"" . test . "\" { v[$4, $2] = $5; unit = $3; if ($4 == \"" . way . "\") s[++n] = $2 } " . \
	"END { for (i = 1; i <= n; i++) { a = v[\"" . way . "\", s[i]]; b = v[\"shm\", s[i]]; " . \
	"if (a > 0 && b > 0) print s[i], unit == \"us\" ? b / a : a / b } }' '" . tsv . "'"
series(test, way) = ratio ? ratios(test, way) : values(test, way)
# The ways that have rows of a shape.
measured(test) = system("awk -F '\t' '$1 == \"" . test . "\" && $2 > 0 && !seen[$4]++ { printf \"%s \", $4 }' '" . tsv . "'")

tests = "latency bw bibw mbw mr multi_lat put_latency get_latency allreduce bcast alltoall"
set multiplot layout 3,4 margins 0.045,0.985,0.06,0.9 spacing 0.055,0.085
set label 1 (ratio ? "as a multiple of shared memory: above 1 is better than it" : "MPI over GLEX and beside it") \
	at screen 0.5,0.965 center font ",13"
do for [test in tests] {
	those = measured(test)
	if (words(those) == 0) {
		set multiplot next
	} else {
		kind = strstrt("bw bibw mbw", test) ? ", MB/s" : test eq "mr" ? ", million a second" : ", us"
		set title test . (ratio ? "" : kind) font ",11" noenhanced
		plot for [way in those] series(test, way) with linespoints ls number_of(way) notitle
		unset label 1
	}
}

# The last panel tells the colours.
unset title
unset border
unset tics
unset grid
unset logscale
set key center center Left reverse samplen 3 spacing 1.3
set xrange [0:1]
set yrange [0:1]
plot for [way in ways] NaN with linespoints ls number_of(way) title (way eq "auto" || way eq "sr" || way eq "er" ? "glex, " . way : way) noenhanced
unset multiplot
