// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Programs that load libibverbs themselves ask the handle of that library for its functions, and so
 * pass what comes before it in the search order. dlsym() and dlvsym() are wrapped for that: what
 * they find is exchanged only if it is, by its address, a function of libibverbs that we have. All
 * else is theirs, and RTLD_NEXT and RTLD_DEFAULT, which mean "as seen from the caller", are passed on by a
 * jump: the caller is who called us.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

#if defined(__x86_64__)
#define OLD_NODE "GLIBC_2.2.5"
#elif defined(__aarch64__) || defined(__powerpc64__)
#define OLD_NODE "GLIBC_2.17"
#endif

/* No calls into a sanitizer around the jump, and before it is set up; and a jump it must be. */
#define BARE __attribute__((optimize("O2"), no_sanitize("address", "thread", "undefined")))

typedef void *dlsym_fn(void *handle, const char *name);
typedef void *dlvsym_fn(void *handle, const char *name, const char *version);

static _Atomic(dlsym_fn *) c_dlsym;
static _Atomic(dlvsym_fn *) c_dlvsym;

#ifdef OLD_NODE

/* The C library's functions can not be asked for by dlsym(): its own table of symbols says. */
struct table {
	ElfW(Sym) const *sym;
	const char *str;
	const uint32_t *gnu_hash;
	ElfW(Addr) base;
};

static BARE bool same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static BARE void *look_up(const struct table *t, const char *name)
{
	uint32_t nbuckets = t->gnu_hash[0], first = t->gnu_hash[1], words = t->gnu_hash[2];
	const uint32_t *buckets = t->gnu_hash + 4 + words * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = buckets + nbuckets, *link;
	uint32_t hash = 5381, i;
	const char *c;

	for (c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	i = buckets[hash % nbuckets];
	if (i < first)
		return NULL;
	for (link = &chain[i - first];; i++, link++) {
		if ((*link | 1) == (hash | 1) && t->sym[i].st_shndx != SHN_UNDEF &&
		    same(t->str + t->sym[i].st_name, name))
			return (void *)(t->base + t->sym[i].st_value);
		if (*link & 1)
			return NULL;
	}
}

static BARE bool begins(const char *s, const char *with)
{
	while (*with && *s == *with) {
		s++;
		with++;
	}
	return !*with;
}

static BARE const char *base_name(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/')
			base = path + 1;
	return base;
}

static BARE bool look_in(const struct link_map *m)
{
	struct table t = { .base = m->l_addr };
	const char *base = base_name(m->l_name);
	ElfW(Dyn) const *d;
	void *sym, *vsym;

	if (!begins(base, "libc.so") && !begins(base, "libdl.so"))
		return false;
	for (d = m->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			t.sym = (void *)d->d_un.d_ptr;
		else if (d->d_tag == DT_STRTAB)
			t.str = (void *)d->d_un.d_ptr;
		else if (d->d_tag == DT_GNU_HASH)
			t.gnu_hash = (void *)d->d_un.d_ptr;
	}
	if (!t.sym || !t.str || !t.gnu_hash)
		return false;
	sym = look_up(&t, "dlsym");
	vsym = look_up(&t, "dlvsym");
	if (!sym || !vsym)
		return false;
	atomic_store_explicit(&c_dlvsym, (dlvsym_fn *)vsym, memory_order_relaxed);
	atomic_store_explicit(&c_dlsym, (dlsym_fn *)sym, memory_order_release);
	return true;
}

/*
 * Any number of threads may do this at once: all find the same. A sanitizer asks before it can
 * stand in for functions of the C library, so none is called here.
 */
static BARE void find_real(void)
{
	const struct link_map *m;

	if (likely(atomic_load_explicit(&c_dlsym, memory_order_acquire) != NULL))
		return;
	/* The C library is among those that the program was started with, which do not go. */
	for (m = _r_debug.r_map; m; m = m->l_next)
		if (look_in(m))
			return;
	abort();
}

static BARE bool is_verb(const char *name)
{
	return begins(name, "ibv_") || begins(name, "_ibv_") || begins(name, "mlx4dv_") || begins(name, "manadv_");
}

/* Ours for libibverbs' own, and for direct verbs that do not look; @found for everything else. */
static void *exchange(void *found, const char *name)
{
	static const struct {
		const char *name;
		size_t real;
		void *ours;
	} verbs[] = {
#define RP_WRAP(verb, node) { #verb, offsetof(struct rp_real_table, verb), (void *)verb },
#define RP_PASS(name, node)
#define RP_PROVIDER(name, node)
#include "verbs.def"
#undef RP_WRAP
#undef RP_PASS
#undef RP_PROVIDER
	};
	const char *library;
	Dl_info info;
	size_t i;

	if (!found || rp_is_disabled() || !dladdr(found, &info) || !info.dli_fname)
		return found;
	library = base_name(info.dli_fname);
	if (!begins(library, "libibverbs.so"))
		return rp_direct(library, name) ?: found;
	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, name) &&
		    *(void **)((char *)rp_real_get() + verbs[i].real) == found)
			return verbs[i].ours;
	return found;
}

static BARE bool as_seen_by_caller(const void *handle)
{
	return handle == RTLD_NEXT || handle == RTLD_DEFAULT;
}

static void *of_handle(void *handle, const char *name)
{
	return exchange(c_dlsym(handle, name), name);
}

static void *of_handle_version(void *handle, const char *name, const char *version)
{
	return exchange(c_dlvsym(handle, name, version), name);
}

BARE void *rp_dlsym(void *handle, const char *name);
BARE void *rp_dlsym(void *handle, const char *name)
{
	dlsym_fn *real;

	find_real();
	if (!as_seen_by_caller(handle) && is_verb(name))
		return of_handle(handle, name);
	real = atomic_load_explicit(&c_dlsym, memory_order_relaxed);
	return real(handle, name);
}

BARE void *rp_dlvsym(void *handle, const char *name, const char *version);
BARE void *rp_dlvsym(void *handle, const char *name, const char *version)
{
	dlvsym_fn *real;

	find_real();
	if (!as_seen_by_caller(handle) && is_verb(name))
		return of_handle_version(handle, name, version);
	real = atomic_load_explicit(&c_dlvsym, memory_order_relaxed);
	return real(handle, name, version);
}

extern __typeof__(rp_dlsym) rp_dlsym_old __attribute__((alias("rp_dlsym")));
extern __typeof__(rp_dlvsym) rp_dlvsym_old __attribute__((alias("rp_dlvsym")));
__asm__(".symver rp_dlsym, dlsym@@GLIBC_2.34");
__asm__(".symver rp_dlvsym, dlvsym@@GLIBC_2.34");
__asm__(".symver rp_dlsym_old, dlsym@" OLD_NODE);
__asm__(".symver rp_dlvsym_old, dlvsym@" OLD_NODE);

void *rp_dl_real(void *handle, const char *name, const char *version)
{
	find_real();
	return c_dlvsym(handle, name, version);
}

#else

void *rp_dl_real(void *handle, const char *name, const char *version)
{
	return dlvsym(handle, name, version);
}

#endif
