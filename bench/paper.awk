# SPDX-License-Identifier: MIT
#
# Prints the tables of the paper from files of bench/paper.h, one table for each device. A row is a
# size 2^w + 1 or 2^w, a column is an algorithm, and figures are in millions of items a second.
#
#   awk -f bench/paper.awk FILE.csv...
BEGIN {
    FS = ","
}

/^#/ || $1 == "device" || NF != 4 {
    next
}

!($1 in algorithms) {
    device[++devices] = $1
}

!(($1, $2) in known) {
    known[$1, $2]
    algorithms[$1] = algorithms[$1] " " $2
}

{
    # 2^w and 2^w + 1 share a row of the table, because no algorithm has both.
    w = int(log($3) / log(2) + 1e-9)
    at[$1, $2, w] = $4
    if (!(($1, w) in sized)) {
        sized[$1, w]
        if (!($1 in least) || w < least[$1])
            least[$1] = w
        if (w > most[$1])
            most[$1] = w
    }
}

END {
    for (d = 1; d <= devices; d++) {
        name = device[d]
        columns = split(algorithms[name], column, " ")
        printf "%s%s, 10^6 items/s\n\n%-8s", (d > 1 ? "\n" : ""), name, "n"
        for (c = 1; c <= columns; c++)
            printf " %16s", column[c]
        printf "\n"
        for (w = least[name]; w <= most[name]; w++) {
            if (!((name, w) in sized))
                continue
            printf "%-8s", "2^" w
            for (c = 1; c <= columns; c++)
                if ((name, column[c], w) in at)
                    printf " %16.2f", at[name, column[c], w]
                else
                    printf " %16s", "-"
            printf "\n"
        }
        printf "\nn is 2^w + 1, or 2^w in columns whose names end in -whole.\n"
    }
}
