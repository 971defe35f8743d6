/* SPDX-License-Identifier: MIT
 *
 * See user.h.
 */
#include "user.h"

#include "error.h"
#include "exit.h"
#include "json.h"
#include "number.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

/* The name of the user; NULL if there is none. Valid until the next call. */
static const char *user_name(uint32_t uid)
{
    static const struct passwd *user; /* a list has many lines of one user */
    if (!user || user->pw_uid != uid)
        user = getpwuid(uid);
    return user ? user->pw_name : NULL;
}

const char *shuf__user_text(char text[SHUF__USER_TEXT], uint32_t uid)
{
    const char *name = user_name(uid);
    if (name)
        snprintf(text, SHUF__USER_TEXT, "%s", name);
    else
        snprintf(text, SHUF__USER_TEXT, "%" PRIu32, uid);
    return text;
}

bool shuf__user_find(const char *text, uint32_t *uid)
{
    struct shuf__error error;
    uint64_t number;
    errno = 0;
    const struct passwd *user = getpwnam(text);
    const int cause = errno;
    const bool is_number =
        shuf__number_parse("uid", text, &number, &error) == SHUF_OK && number < UINT32_MAX;
    if (!user && !is_number && shuf__is_system_failure(cause))
        exit(shuf__fail_with(EX_OSERR, "--user %.64s: %s", text, strerror(cause)));
    if (user || is_number)
        *uid = user ? user->pw_uid : (uint32_t)number;
    return user || is_number;
}

void shuf__json_user(json_t *object, uint32_t uid)
{
    const char *name = user_name(uid);
    shuf__json_integer(object, "uid", uid);
    if (name)
        shuf__json_text(object, "user", name);
    else
        json_object_set_new(object, "user", json_null());
}
