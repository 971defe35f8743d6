/* SPDX-License-Identifier: MIT
 *
 * See daemon.h.
 */
#include "daemon.h"

#include "backend.h"
#include "fuzz.h"
#include "handlers/service.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- The backend ---- */

static struct shuf__backend_ops fake_ops;
static atomic_uint refusals; /* allocations that will fail */

static shuf_status fake_alloc(struct shuf__backend *backend, enum shuf__memory kind, uint64_t bytes,
                              struct shuf__block *block, struct shuf__error *error)
{
    unsigned left = atomic_load(&refusals);
    while (left > 0)
        if (atomic_compare_exchange_weak(&refusals, &left, left - 1)) {
            *block = (struct shuf__block){.kind = kind, .fd = -1};
            return shuf__fail(error, SHUF_NO_MEMORY, "the device is full");
        }
    return shuf__cpu_ops.alloc(backend, kind, bytes, block, error);
}

static shuf_status fake_memory(struct shuf__backend *backend, enum shuf__memory kind,
                               uint64_t *available, uint64_t *total, struct shuf__error *error)
{
    (void)backend;
    (void)kind;
    (void)error;
    *total = UINT64_C(1) << 30;
    *available = *total;
    return SHUF_OK;
}

/* Replaces kernels/backends.c. */
shuf_status shuf__backend_open(const char *spec, unsigned threads, struct shuf__backend **backend,
                               struct shuf__error *error)
{
    (void)spec;
    const shuf_status status = shuf__cpu_ops.open(NULL, threads, backend, error);
    if (status == SHUF_OK)
        (*backend)->ops = &fake_ops;
    return status;
}

void daemon_refuse_memory(unsigned count)
{
    atomic_store(&refusals, count);
}

/* ---- Named keys ---- */

static const char *const key_names[DAEMON_KEYS] = {"", "open", "secret", "unknown"};

/* The bits in each of two directories. */
static const shuf_key key_bits[2][DAEMON_KEYS] = {
    {[DAEMON_OPEN_KEY] = {{11, 12}}, [DAEMON_SECRET_KEY] = {{13, 14}}},
    {[DAEMON_OPEN_KEY] = {{21, 22}}, [DAEMON_SECRET_KEY] = {{13, 14}}},
};

static const shuf_key *loaded; /* NULL: no keys */

/* The linker puts this function in the place of shuf__key_files_read(). */
shuf_status __wrap_shuf__key_files_read(const char *directory, struct shuf__key_set *set,
                                        struct shuf__error *error);
shuf_status __wrap_shuf__key_files_read(const char *directory, struct shuf__key_set *set,
                                        struct shuf__error *error)
{
    if (*directory == 'x')
        return shuf__fail(error, SHUF_IO, "keys: no such directory");
    for (unsigned key = DAEMON_OPEN_KEY; key <= DAEMON_SECRET_KEY; key++) {
        struct shuf__key_facts *facts = &set->facts[set->count];
        snprintf(facts->name, sizeof facts->name, "%s", key_names[key]);
        facts->has_group = key == DAEMON_OPEN_KEY;
        facts->group = getegid();
        set->bits[set->count++] = key_bits[*directory == '2'][key];
    }
    return SHUF_OK;
}

const char *daemon_key_name(unsigned key)
{
    return key_names[key];
}

bool daemon_key_bits(unsigned key, shuf_key *bits)
{
    if (!loaded || (key != DAEMON_OPEN_KEY && key != DAEMON_SECRET_KEY))
        return false;
    *bits = loaded[key];
    return true;
}

/* ---- The settings ---- */

static struct shuf__config config;
static struct shuf__log logging;
static uv_loop_t loop;
static uv_prepare_t serving;
static struct shuf__service service;
static struct shuf__engine *engine;
static uint64_t most_user_leases; /* since the beginning of the input */

static const struct setting {
    const char *key, *value;
} settings[DAEMON_SETTINGS] = {
    {"host_memory", "64Ki"},
    {"host_memory", "256Ki"},
    {"host_memory", "1Mi"},
    {"host_memory", "5Mi"},
    {"host_memory", "16Mi"},
    {"host_cache", "0"},
    {"host_cache", "64Ki"},
    {"host_cache", "1Mi"},
    {"host_cache", "16Mi"},
    {"leases", "2"},
    {"leases", "16"},
    {"user_leases", "3"},
    {"user_leases", "20"},
    {"user_memory", "20%"},
    {"user_memory", "75%"},
    {"user_memory", "100Ki"},
    {"cache_time", "0"},
    {"cache_time", "10min"},
    {"keys", "1"},
    {"keys", "2"},
    {"keys", ""},
    {"keys", "x"},
    {"spin_time", "50us"},
    {"spin_time", "0"},
};

static void set(const char *key, const char *value)
{
    struct shuf__error error;
    fuzz_require(shuf__config_set(&config, key, value, &error) == SHUF_OK);
}

/* As daemon/reload.c does after it has read the file. A failure changes no key. */
static void load_keys(void)
{
    struct shuf__error error;
    if (shuf__service_load_keys(&service, &error) == SHUF_OK)
        loaded = *config.keys ? key_bits[*config.keys == '2'] : NULL;
    else
        fuzz_require(*config.keys == 'x');
}

static void apply(void)
{
    struct shuf__error error;
    shuf__service_configure(&service);
    load_keys();
    if (config.user_leases > most_user_leases)
        most_user_leases = config.user_leases;
    fuzz_require(shuf__allocations_measure(&service.allocations, SHUF__MEMORY_MEMFD, &error) ==
                 SHUF_OK);
    shuf__pool_hold_to_limit(&service.pool, SHUF__SIDE_HOST);
}

void daemon_reload(unsigned setting)
{
    set(settings[setting].key, settings[setting].value);
    apply();
}

void daemon_reset(void)
{
    static const struct setting first[] = {
        {"host_memory", "16Mi"}, {"host_cache", "1Mi"},   {"leases", "16"}, {"user_leases", "20"},
        {"user_memory", "75%"},  {"cache_time", "10min"}, {"keys", "1"},    {"spin_time", "0"}};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        set(first[i].key, first[i].value);
    most_user_leases = 0;
    apply();
}

/* ---- The loop ---- */

static void on_prepare(uv_prepare_t *handle)
{
    (void)handle;
    shuf__sessions_serve(&service.sessions);
}

static void on_idle(void *context)
{
    (void)context;
}

static void on_device_failed(void *context, const struct shuf__error *error)
{
    (void)context;
    fprintf(stderr, "the device failed: %s\n", error->text);
    abort();
}

static void on_closed(struct shuf__sessions *sessions)
{
    (void)sessions;
}

static void on_workers_done(struct shuf__allocations *allocations)
{
    (void)allocations;
}

static void start_engine(void)
{
    struct shuf__error error = {0};
    const struct shuf__engine_options options = {.backend = "fake",
                                                 .threads = 1,
                                                 .queue = 4,
                                                 .idle = on_idle,
                                                 .device_failed = on_device_failed};
    fuzz_require(shuf__engines_start(&engine, &loop, &options, false, &error) == SHUF_OK);
    shuf__service_set_engine(&service, engine);
}

void daemon_open(void)
{
    fake_ops = shuf__cpu_ops;
    fake_ops.alloc = fake_alloc;
    fake_ops.memory = fake_memory;
    fake_ops.small = 100; /* an engine of their own, as of a GPU */
    shuf__config_init(&config);
    shuf__log_init(&logging, SHUF__LOG_ERROR);
    fuzz_require(uv_loop_init(&loop) == 0);
    uv_prepare_init(&loop, &serving);
    uv_prepare_start(&serving, on_prepare);
    shuf__service_init(&service, &loop, &config, &logging);
    service.sessions.closed = on_closed;
    service.allocations.workers_done = on_workers_done;
    service.allocations.max_count = 64;
    start_engine();
    shuf__service_started(&service, "/fuzz.sock", false);
}

int daemon_connect(uint32_t uid)
{
    int ends[2];
    fuzz_require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    const struct ucred peer = {.pid = getpid(), .uid = uid, .gid = getegid()};
    shuf__session_open(&service.sessions, ends[1], &peer);
    return ends[0];
}

void daemon_turn(void)
{
    uv_run(&loop, UV_RUN_NOWAIT);
}

bool daemon_computes(void)
{
    return !shuf__engines_are_idle(engine);
}

bool daemon_is_idle(void)
{
    return !daemon_computes() && service.allocations.worker_blocks == 0 &&
           shuf__ready_is_empty(&service.sessions.ready);
}

void daemon_wait(void)
{
    poll(&(struct pollfd){.fd = uv_backend_fd(&loop), .events = POLLIN}, 1, 1);
}

void daemon_sweep(void)
{
    shuf__allocations_sweep_now(&service.allocations);
}

/* ---- Books ---- */

static void check_allocations(void)
{
    const struct shuf__allocations *all = &service.allocations;
    const struct shuf__allocation *allocation;
    uint64_t used[SHUF__SIDES] = {0}, count = 0, buffers = 0, pending = 0, uncommitted = 0;
    LIST_FOREACH (allocation, &all->list, link) {
        used[shuf__side_of(allocation->kind)] += allocation->bytes;
        fuzz_require(allocation->committed <= allocation->bytes);
        uncommitted += allocation->bytes - allocation->committed;
        count++;
        buffers += allocation->buffer;
        pending += allocation->pending_free;
    }
    fuzz_require(count == all->count && buffers == all->buffers);
    fuzz_require(pending == all->pending_free_count);
    fuzz_require(uncommitted == all->budgets[SHUF__SIDE_HOST].uncommitted);
    fuzz_require(all->budgets[SHUF__SIDE_DEVICE].unconfirmed == 0);
    for (int side = 0; side < SHUF__SIDES; side++)
        fuzz_require(used[side] == all->budgets[side].used);
}

/* The result belongs to the user who leases it. */
static void check_lease(const struct shuf__session *session, const struct shuf__lease *lease,
                        bool prefetch)
{
    const struct shuf__cache_entry *entry = lease->entry;
    fuzz_require(entry->refs > 0 && !lease->releasing && lease->prefetch == prefetch);
    fuzz_require(entry->key.uid == session->client.uid);
    fuzz_require(!entry->allocation || entry->allocation->uid == session->client.uid);
    fuzz_require(prefetch || (entry->ready && entry->allocation));
}

static void check_leases(void)
{
    const struct shuf__session *session;
    const struct shuf__lease *lease;
    uint64_t count = 0, sessions = 0;
    LIST_FOREACH (session, &service.sessions.list, link) {
        uint64_t held = 0, prefetched = 0;
        LIST_FOREACH (lease, &session->leases.list, of_owner) {
            check_lease(session, lease, false);
            held++;
        }
        LIST_FOREACH (lease, &session->leases.prefetched, of_owner) {
            check_lease(session, lease, true);
            prefetched++;
        }
        fuzz_require(held == session->leases.leased && held <= DAEMON_LEASES);
        fuzz_require(prefetched == session->leases.prefetches && prefetched <= SHUF__PREFETCHES);
        count += held + prefetched;
        sessions++;
    }
    fuzz_require(count == service.leases.table.count && sessions == service.sessions.count);
}

static void check_blocks_of(const struct shuf__account *account)
{
    const struct shuf__allocation *allocation;
    uint64_t blocks = 0, bytes = 0, idle = 0, pending = 0;
    LIST_FOREACH (allocation, &service.allocations.list, link) {
        if (allocation->account != account)
            continue;
        fuzz_require(allocation->uid == account->uid);
        blocks++;
        bytes += allocation->bytes;
        idle += allocation->size_class ? allocation->bytes : 0;
        pending += allocation->pending_free ? allocation->bytes : 0;
    }
    fuzz_require(blocks == account->blocks && bytes == shuf__account_bytes(account));
    fuzz_require(idle == shuf__account_idle(account));
    fuzz_require(pending == account->pending_free[SHUF__SIDE_HOST]);
}

/* The limit of leases is checked before a result is computed. So each other connection of the user
 * may exceed it by one lease. */
static void check_account(const struct shuf__account *account)
{
    const struct shuf__session *session;
    uint64_t clients = 0, leases = 0, prefetches = 0;
    LIST_FOREACH (session, &service.sessions.list, link) {
        const bool own = session->leases.account == account;
        fuzz_require(own == (session->client.uid == account->uid));
        clients += own;
        leases += own ? session->leases.leased : 0;
        prefetches += own ? session->leases.prefetches : 0;
    }
    fuzz_require(clients == account->clients && leases == account->leases);
    fuzz_require(prefetches == account->prefetches);
    fuzz_require(leases < most_user_leases + clients || leases == 0 ||
                 shuf__uid_is_privileged(account->uid));
    check_blocks_of(account);
}

void daemon_check(void)
{
    const struct shuf__account *account;
    check_allocations();
    check_leases();
    LIST_FOREACH (account, &service.allocations.accounts.list, link)
        check_account(account);
}

void daemon_check_empty(void (*settle)(void))
{
    fuzz_require(service.sessions.count == 0 && service.leases.table.count == 0);
    shuf__pool_clear(&service.pool);
    settle();
    for (int i = 0; i < 3 && service.allocations.count > 0; i++) {
        daemon_sweep();
        settle();
    }
    daemon_check();
    fuzz_require(service.allocations.count == 0);
    fuzz_require(service.allocations.budgets[SHUF__SIDE_HOST].releasing == 0);
    fuzz_require(service.allocations.budgets[SHUF__SIDE_HOST].unconfirmed == 0);
    fuzz_require(LIST_EMPTY(&service.allocations.accounts.list));
    fuzz_require(service.cache.tree == NULL);
}
