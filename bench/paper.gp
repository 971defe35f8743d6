# SPDX-License-Identifier: MIT
#
# Draws throughput against n from a file of bench/paper.h, and the figures of the paper's authors:
#
#   gnuplot -c bench/paper.gp IN.csv AUTHORS.csv OUT.svg
#
# Lines are the measurements in IN.csv. Open circles of the same colour are those of the authors, on
# their machine.
in = ARG1
authors = ARG2
set datafile separator comma
set datafile missing NaN
set terminal svg size 900,620 dynamic background rgb "white" font "sans-serif,13"
set output ARG3
set logscale x 2
set logscale y 10
set format x "2^{%L}"
set format y "10^{%L}"
set xlabel "n"
set ylabel "millions of u64 items a second"
set grid xtics ytics lc rgb "#dddddd"
set key outside below maxcols 5 samplen 2
set xtics 16, 8
colours = "#000000 #e69f00 #56b4e9 #009e73 #0072b2 #d55e00 #cc79a7 #999999 #8c564b #7f7f00 #17becf #d62728"
do for [i = 1:words(colours)] {
    set linetype i lc rgb word(colours, i)
}
set linetype cycle words(colours)

# The names of the rows in the order of the file; the names that the authors have too; the device.
rows = ""
theirs = ""
device = ""
with_row(list, row) = strstrt(list . " ", " " . row . " ") ? list : list . " " . row
set table $seen
plot in skip 1 using (rows = with_row(rows, strcol(2)), device = strcol(1), 0) with table
number(row) = sum [i = 1:words(rows)] (word(rows, i) eq row ? i : 0)
plot authors using (theirs = number(strcol(2)) ? with_row(theirs, strcol(2)) : theirs, 0) with table
unset table
set title device noenhanced

is(row) = strcol(2) eq row
plot for [row in rows] in skip 1 using 3:(is(row) ? $4 : NaN) \
         with linespoints lc number(row) lw 1.5 pt 7 ps 0.4 title row noenhanced, \
     for [row in theirs] authors using 3:(is(row) ? $4 : NaN) \
         with points lc number(row) pt 6 ps 0.9 notitle, \
     keyentry with points lc rgb "black" pt 6 ps 0.9 title "the paper's authors"
