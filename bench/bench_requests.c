/* SPDX-License-Identifier: MIT
 *
 * Small requests: how long one takes, and how many a second are answered, each next to a peer.
 * --latency or --rate: that half alone.
 */
#include "requests.h"

int main(int argc, char **argv)
{
    const char *latency = NULL, *rate = NULL, *only = NULL, *backend = NULL;
    const struct report_option options[] = {
        {"--latency", NULL, &latency},
        {"--rate", NULL, &rate},
        {"--only", "TEXT", &only},       /* of the rates: rows that have it in their names */
        {"--backend", "SPEC", &backend}, /* else the rate is the CPU backend's: sockets and loops */
        {0},
    };
    struct report *report = report_begin_with("small requests", options, argc, argv);
    if (rate || !latency)
        requests_rate(report, backend ? backend : "cpu", only);
    if (latency || !rate)
        requests_latency(report, backend ? backend : "auto");
    return report_end(report);
}
