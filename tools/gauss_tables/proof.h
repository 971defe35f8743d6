#ifndef PH
#define PH
#include "tables.h"
#include <stdbool.h>
#include <stdio.h>
struct shuf__proof {
    int x;
};
bool shuf__prove(const shuf__tables *tables, struct shuf__proof *proof);
void shuf__proof_write(const struct shuf__proof *proof, const char *margin, FILE *to);
void shuf__proof_write_summary(const struct shuf__proof *proof, const char *margin, FILE *to);
int shuf__proof_faults(const struct shuf__proof *proof);
#endif
