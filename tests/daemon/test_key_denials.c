/* SPDX-License-Identifier: MIT
 *
 * A client cannot learn from the time of a refusal whether a key exists: the daemon reads the
 * groups of the client, and compares it with the privileged users, before each refusal.
 */
#include "identity.h"

static bool find_group(int socket, gid_t group, bool *is_member);
static bool compare_uid(uid_t uid);
#define shuf__peer_find_group find_group
#define shuf__uid_is_privileged compare_uid
#include "keys/keyring.c"
#undef shuf__peer_find_group
#undef shuf__uid_is_privileged

#include "support/cmocka_all.h"

enum { UID = 61000, GROUP = 4711, PRIMARY = 0, SOCKET = 9 };

static unsigned reads, comparisons;
static gid_t supplementary;

static bool find_group(int socket, gid_t group, bool *is_member)
{
    assert_int_equal(socket, SOCKET);
    if (group != PRIMARY)
        reads++; /* also of the supplementary groups, which take longer */
    *is_member = group == PRIMARY || group == supplementary;
    return true;
}

static bool compare_uid(uid_t uid)
{
    comparisons++;
    return uid == 0;
}

static shuf_status admit(const char *name)
{
    static const struct shuf__keyring keyring = {
        .set = {.facts = {{.name = "members", .check = 1, .has_group = true, .group = GROUP},
                          {.name = "root", .check = 2}},
                .count = 2}};
    struct shuf__named_key key = {0};
    struct shuf__error error;
    strcpy(key.name, name);
    reads = comparisons = 0;
    return shuf__keyring_admit(&keyring, UID, SOCKET, &key, &error);
}

static void each_refusal_reads_the_groups(void **state)
{
    static const char *const names[] = {"members", "root", "missing"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(admit(names[i]), SHUF_DENIED);
        assert_int_equal(reads, 1);
        assert_int_equal(comparisons, 1);
    }
}

static void only_members_are_admitted(void **state)
{
    (void)state;
    supplementary = GROUP;
    assert_int_equal(admit("members"), SHUF_OK);
    assert_int_equal(admit("root"), SHUF_DENIED);
    assert_int_equal(admit("missing"), SHUF_DENIED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_refusal_reads_the_groups),
        cmocka_unit_test(only_members_are_admitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
