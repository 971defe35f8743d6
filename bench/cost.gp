# SPDX-License-Identifier: MIT
#
# Draws cost against n for every device and algorithm in a file of bench/cost.h:
#
#   gnuplot -c bench/cost.gp IN.csv OUT.svg
#
# The lines connect n = 2^w. The open circles are n = 2^w + 1, the worst case of an algorithm for
# powers of two.
in = ARG1
set datafile separator comma
set datafile missing NaN
set terminal svg size 900,560 dynamic background rgb "white" font "sans-serif,13"
set output ARG2
set logscale x 2
set logscale y 10
set format x "2^{%L}"
set format y "%g"
set xlabel "n"
set ylabel "nanoseconds a value"
set grid xtics ytics lc rgb "#dddddd"
set key outside below maxcols 3 samplen 2
set xtics 256, 4

# The names of the series in the order of the file, each in quotes.
name(algorithm, device) = algorithm . ", " . device
series = ""
note(item) = strstrt(series, item) ? 0 : (series = series . " " . item, 0)
set table $seen
plot in skip 1 using (note("'" . name(strcol(2), strcol(1)) . "'")) with table
unset table

is_power(n) = (int(n) & (int(n) - 1)) == 0
of(i) = name(strcol(2), strcol(1)) eq word(series, i)
plot for [i = 1:words(series)] in skip 1 using 3:(of(i) && is_power($3) ? $5 : NaN) \
         with linespoints lc i lw 1.5 pt 7 ps 0.4 title word(series, i), \
     for [i = 1:words(series)] in skip 1 using 3:(of(i) && is_power($3 - 1) ? $5 : NaN) \
         with points lc i pt 6 ps 0.7 notitle, \
     NaN with points lc rgb "black" pt 6 ps 0.7 title "n = 2^w + 1"
