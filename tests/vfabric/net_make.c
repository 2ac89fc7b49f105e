// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Topologies by parameters: meshes, tori, extended generalized fat trees, random ones. */
#include <stdlib.h>
#include <string.h>

#include "net.h"

#define MAX_DIMS 6
#define MAX_NODES 200000

struct options {
	unsigned int hosts, degree, seed, speed, ext, vswitch, shared, length;
};

static int fail(struct net *net, const char *why, const char *spec)
{
	snprintf(net->error, sizeof(net->error), "%.100s: %.100s", spec, why);
	return -1;
}

/* "4x4x2" or "18,36" into dims; how many, or -1. The character that ended the list goes to *end. */
static int numbers(const char **at, char separator, unsigned int *dims)
{
	int n = 0;

	for (;;) {
		char *end;
		unsigned long value = strtoul(*at, &end, 10);

		if (end == *at || !value || value > MAX_NODES || n == MAX_DIMS)
			return -1;
		dims[n++] = value;
		*at = end;
		if (*end != separator || end[1] < '0' || end[1] > '9')
			return n;
		*at = end + 1;
	}
}

static int read_options(const char *at, struct options *o)
{
	while (*at == ',') {
		char name[16];
		unsigned int value;
		int used;

		if (sscanf(at, ",%15[a-z]=%u%n", name, &value, &used) != 2)
			return -1;
		if (!strcmp(name, "hosts"))
			o->hosts = value;
		else if (!strcmp(name, "degree"))
			o->degree = value;
		else if (!strcmp(name, "seed"))
			o->seed = value;
		else if (!strcmp(name, "speed") && (value == 1 || value == 2 || value == 4))
			o->speed = value;
		else if (!strcmp(name, "ext") && value <= 8 && !(value & (value - 1)))
			o->ext = value;
		else if (!strcmp(name, "length") && value <= NET_MAX_METRES)
			o->length = value;
		else if (!strcmp(name, "vswitch"))
			o->vswitch = value;
		else if (!strcmp(name, "shared"))
			o->shared = value;
		else
			return -1;
		at += used;
	}
	return *at ? -1 : 0;
}

static uint32_t add(struct net *net, enum net_type type, char letter, unsigned int num,
		    unsigned int ports)
{
	char id[32];

	snprintf(id, sizeof(id), "%c%u", letter, num);
	return net_add(net, type, id, NULL, ports);
}

/* Hosts on the last ports of every switch from first on: H1.. in the order of the switches. */
static int add_hosts(struct net *net, uint32_t first, unsigned int nsw, unsigned int hosts,
		     unsigned int port)
{
	for (unsigned int i = 0; i < nsw * hosts; i++) {
		uint32_t host = add(net, NET_HCA, 'H', i + 1, 1);

		if (host == NET_NONE || net_plug(net, host, 1, first + i / hosts,
						 port + i % hosts))
			return -1;
	}
	return 0;
}

static int make_grid(struct net *net, const char *spec, const char *at, int wrap,
		     struct options *o)
{
	unsigned int dims[MAX_DIMS], total = 1, step = 1;
	int n = numbers(&at, 'x', dims);
	uint32_t first = net->n;

	if (n < 1 || read_options(at, o))
		return fail(net, "want SIZExSIZE...[,hosts=N]", spec);
	for (int d = 0; d < n; d++) {
		total *= dims[d];
		if (total > MAX_NODES)
			return fail(net, "too many nodes", spec);
	}
	for (unsigned int i = 0; i < total; i++)
		if (add(net, NET_SWITCH, 'S', i + 1, 2 * n + o->hosts) == NET_NONE)
			return -1;
	/* Ports 2d+1 and 2d+2 lead down and up in dimension d. */
	for (int d = 0; d < n; step *= dims[d++])
		for (unsigned int i = 0; i < total; i++) {
			unsigned int c = i / step % dims[d];
			uint32_t up = first + i + step;

			if (c == dims[d] - 1) {
				/* Between two there is one cable, in a torus, too. */
				if (!wrap || dims[d] < 3)
					continue;
				up = first + i - c * step;
			}
			if (net_plug(net, first + i, 2 * d + 2, up, 2 * d + 1))
				return -1;
		}
	return add_hosts(net, first, total, o->hosts, 2 * n + 1);
}

/*
 * XGFT(h; m1..mh; w1..wh): a node of level l has m_l children and w_(l+1) parents. Within a level
 * a node is (A, B): A counts over m_(l+1)..m_h, B over w_1..w_l; a parent drops the lowest digit
 * of A and gets a digit more in B.
 */
static int build_xgft(struct net *net, const char *spec, int h, const unsigned int *m,
		      const unsigned int *w)
{
	uint32_t base[MAX_DIMS + 1];
	uint64_t b[MAX_DIMS + 1], count[MAX_DIMS + 1], total = 0;

	for (int l = 0; l <= h; l++) {
		uint64_t a = 1;

		b[l] = l ? b[l - 1] * w[l - 1] : 1;
		for (int i = l; i < h; i++)
			a *= m[i];
		count[l] = a * b[l];
		total += count[l];
		if (total > MAX_NODES)
			return fail(net, "too many nodes", spec);
	}
	for (int l = h; l >= 0; l--) {	/* switches first: the way ibnetdiscover prints */
		unsigned int ports = (l ? m[l - 1] : 0) + (l < h ? w[l] : 0);

		base[l] = net->n;
		for (unsigned int i = 0; i < count[l]; i++) {
			char id[32];

			if (l)
				snprintf(id, sizeof(id), "L%d-%u", l, i + 1);
			else
				snprintf(id, sizeof(id), "H%u", i + 1);
			if (net_add(net, l ? NET_SWITCH : NET_HCA, id, NULL, ports) == NET_NONE)
				return -1;
		}
	}
	for (int l = 0; l < h; l++)
		for (unsigned int i = 0; i < count[l]; i++) {
			uint64_t a = i / b[l], low = i % b[l];

			for (unsigned int up = 0; up < w[l]; up++) {
				uint64_t parent = a / m[l] * b[l + 1] + up * b[l] + low;

				if (net_plug(net, base[l] + i, (l ? m[l - 1] : 0) + up + 1,
					     base[l + 1] + parent, a % m[l] + 1))
					return -1;
			}
		}
	return 0;
}

static int make_xgft(struct net *net, const char *spec, const char *at, struct options *o)
{
	unsigned int m[MAX_DIMS], w[MAX_DIMS];
	int h = numbers(&at, ',', m);

	if (h < 1 || *at++ != '/' || numbers(&at, ',', w) != h || read_options(at, o))
		return fail(net, "want m1,..,mh/w1,..,wh", spec);
	return build_xgft(net, spec, h, m, w);
}

/* m-port n-tree: 2 (m/2)^n hosts on (2n-1) (m/2)^(n-1) switches of m ports. */
static int make_tree(struct net *net, const char *spec, const char *at, struct options *o)
{
	unsigned int arg[MAX_DIMS], m[MAX_DIMS], w[MAX_DIMS];

	if (numbers(&at, ',', arg) != 2 || arg[0] % 2 || arg[1] > MAX_DIMS || read_options(at, o))
		return fail(net, "want PORTS,LEVELS with an even number of ports", spec);
	for (unsigned int l = 0; l < arg[1]; l++) {
		m[l] = l == arg[1] - 1 ? arg[0] : arg[0] / 2;
		w[l] = l ? arg[0] / 2 : 1;
	}
	return build_xgft(net, spec, arg[1], m, w);
}

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

static unsigned int free_port(const struct net *net, uint32_t sw, unsigned int degree)
{
	for (unsigned int p = 1; p <= degree; p++)
		if (net->nodes[sw].ports[p].peer == NET_NONE)
			return p;
	return 0;
}

static int linked(const struct net *net, uint32_t a, uint32_t b)
{
	for (unsigned int p = 1; p <= net->nodes[a].nports; p++)
		if (net->nodes[a].ports[p].peer == b)
			return 1;
	return 0;
}

/* A random tree keeps it connected; random cables fill the ports up as far as they go. */
static int make_random(struct net *net, const char *spec, const char *at, struct options *o)
{
	unsigned int dims[MAX_DIMS], n, tries;
	uint32_t first = net->n;
	uint64_t rng;

	o->degree = 4;
	if (numbers(&at, ',', dims) != 1 || read_options(at, o) || o->degree < 2)
		return fail(net, "want SWITCHES[,degree=N,hosts=N,seed=N], degree at least 2",
			    spec);
	n = dims[0];
	rng = o->seed * 2654435761ull + 1;
	for (unsigned int i = 0; i < n; i++)
		if (add(net, NET_SWITCH, 'S', i + 1, o->degree + o->hosts) == NET_NONE)
			return -1;
	for (unsigned int i = 1; i < n; i++) {
		uint32_t to = next_random(&rng) % i;

		while (!free_port(net, first + to, o->degree))
			to = (to + 1) % i;
		if (net_plug(net, first + i, free_port(net, first + i, o->degree), first + to,
			     free_port(net, first + to, o->degree)))
			return -1;
	}
	for (tries = 0; tries < n * o->degree * 4; tries++) {
		uint32_t a = first + next_random(&rng) % n, b = first + next_random(&rng) % n;
		unsigned int pa = free_port(net, a, o->degree), pb = free_port(net, b, o->degree);

		if (a != b && pa && pb && !linked(net, a, b) && net_plug(net, a, pa, b, pb))
			return -1;
	}
	return add_hosts(net, first, n, o->hosts, o->degree + 1);
}

int net_make(struct net *net, const char *spec)
{
	struct options o = { .hosts = 1, .seed = 1, .speed = 4 };
	const char *at = strchr(spec, ':');
	uint32_t first = net->n;
	int rc;

	if (!at)
		return fail(net, "want mesh: torus: xgft: tree: or random:", spec);
	at++;
	if (!strncmp(spec, "mesh:", 5))
		rc = make_grid(net, spec, at, 0, &o);
	else if (!strncmp(spec, "torus:", 6))
		rc = make_grid(net, spec, at, 1, &o);
	else if (!strncmp(spec, "xgft:", 5))
		rc = make_xgft(net, spec, at, &o);
	else if (!strncmp(spec, "tree:", 5))
		rc = make_tree(net, spec, at, &o);
	else if (!strncmp(spec, "random:", 7))
		rc = make_random(net, spec, at, &o);
	else
		return fail(net, "want mesh: torus: xgft: tree: or random:", spec);
	if (!rc && o.vswitch)
		rc = net_vswitch(net, first, o.vswitch);
	if (!rc && o.shared)
		rc = net_shared(net, first, o.shared);
	for (uint32_t i = first; i < net->n; i++)
		for (unsigned int p = 0; p <= net->nodes[i].nports; p++) {
			net->nodes[i].ports[p].speed = o.speed;
			net->nodes[i].ports[p].ext = o.ext;
			net->nodes[i].ports[p].length = o.length * 100;
		}
	return rc;
}
