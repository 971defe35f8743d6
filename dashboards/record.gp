# SPDX-License-Identifier: MIT
#
# Draws the samples of dashboards/record: rates are differences of neighbouring samples.
set terminal svg size 900,900 font "sans,13" background "white"
set output output
set multiplot layout 4,1
set key outside right top
set grid lc rgb "#dddddd"
set lmargin 12
set rmargin 18
set xrange [0:3 * phase]
set style data lines
stats samples using 1 nooutput
start = STATS_min

# The rate of column c a second; and the mean of what column s sums up and c counts.
last_t = last = 0
rate(t, v) = (r = last_t > 0 && t > last_t ? (v - last) / (t - last_t) : NaN, last_t = t, last = v, r)
last_s = last_c = 0
mean(s, c) = (m = c > last_c ? (s - last_s) / (c - last_c) : NaN, last_s = s, last_c = c, m)

set arrow 1 from phase, graph 0 to phase, graph 1 nohead lc rgb "#888888" dt 2
set arrow 2 from 2 * phase, graph 0 to 2 * phase, graph 1 nohead lc rgb "#888888" dt 2
set label 1 "n = 1e5, 4 clients" at phase * 0.5, graph 1.08 center
set label 2 "n = 2e7, 8 clients" at phase * 1.5, graph 1.08 center
set label 3 "n = 2e7, equal requests" at phase * 2.5, graph 1.08 center
set ylabel "requests / s"
plot samples using ($1 - start):(rate($1, $2)) lw 2 title "requests", \
     last_t = 0, samples using ($1 - start):(rate($1, $4)) lw 2 title "cache hits"
unset label 1
unset label 2
unset label 3
set ylabel "values / s"
set logscale y
set format y "10^{%L}"
plot last_t = 0, samples using ($1 - start):(rate($1, $3)) lw 2 title "values"
set ylabel "mean time in ms"
plot last_c = 0, samples using ($1 - start):(1e3 * mean($6, $7)) lw 2 title "queue", \
     last_c = 0, samples using ($1 - start):(1e3 * mean($8, $9)) lw 2 title "device", \
     last_c = 0, samples using ($1 - start):(1e3 * mean($10, $11)) lw 2 title "reply"
unset logscale y
set format y "%g"
set ylabel "host memory in MiB"
set xlabel "seconds"
plot samples using ($1 - start):($12 / 1048576) lw 2 title "used", \
     samples using ($1 - start):($13 / 1048576) lw 2 title "of it idle"
