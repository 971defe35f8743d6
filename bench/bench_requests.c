/* SPDX-License-Identifier: MIT
 *
 * Small requests: their latency and their rate, each next to a peer. --latency or --rate selects
 * one of the two.
 */
#include "requests.h"

int main(int argc, char **argv)
{
    const char *latency = NULL, *rate = NULL, *only = NULL, *backend = NULL;
    const struct report_option options[] = {
        {"--latency", NULL, &latency},
        {"--rate", NULL, &rate},
        {"--only", "TEXT", &only}, /* rates only: rows whose names contain TEXT */
        /* default: "cpu" for rates, so that sockets and loops decide; "auto" for latency */
        {"--backend", "SPEC", &backend},
        {0},
    };
    struct report *report = report_begin_with("small requests", options, argc, argv);
    if (rate || !latency)
        requests_rate(report, backend ? backend : "cpu", only);
    if (latency || !rate)
        requests_latency(report, backend ? backend : "auto");
    return report_end(report);
}
