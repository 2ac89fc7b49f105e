// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The console's words for what somebody at a node changes, and the subnet manager hears of or not. */
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "journal.h"
#include "manager.h"
#include "sma.h"

int console_baselid(struct fabric *f, const char *rest, FILE *out)
{
	unsigned int num, lid, lmc = 0;
	uint32_t node, port;

	if (console_port(f, &rest, &node, &num, out))
		return -1;
	if (sscanf(rest, "%u %u", &lid, &lmc) < 1 || lid >= UCAST_LIDS || lmc > 7) {
		fprintf(out, "# change baselid: bad lid\n");
		return -1;
	}
	port = f->nodes[node].first + num;
	f->ports[port].lid = lid;
	f->ports[port].lmc = lmc;
	journal_lid(f, port);
	return 0;
}

int console_trap(struct fabric *f, const char *rest, FILE *out)
{
	unsigned int num, number;
	uint32_t node, port;

	if (console_port(f, &rest, &node, &num, out))
		return -1;
	port = f->nodes[node].first + num;
	number = strtoul(rest, NULL, 10);
	if (number == 128)
		trap_link_state(f, node);
	else if (number == 131)
		trap_flow_control(f, port);
	else if (number == 144)
		trap_capabilities(f, port);
	else {
		fprintf(out, "# no trap %u\n", number);
		return -1;
	}
	return 0;
}

/* Describe "node" "what it is called from now on" */
int console_describe(struct fabric *f, const char *rest, FILE *out)
{
	unsigned int num;
	uint32_t node;
	char text[65];

	if (console_port(f, &rest, &node, &num, out))
		return -1;
	if (num || sscanf(rest, " \"%64[^\"]\"", text) != 1) {
		fprintf(out, "# want \"node\" \"description\"\n");
		return -1;
	}
	sma_describe(f, node, text);
	return 0;
}

/* Enable "node"[port] width=3 speed=1, in PortInfo's bits */
int console_enable(struct fabric *f, const char *rest, FILE *out)
{
	unsigned int num, value, width = 0, speed = 0;
	uint32_t node;
	char word[8];
	int used;

	if (console_port(f, &rest, &node, &num, out))
		return -1;
	while (sscanf(rest, " %7[a-z]=%u%n", word, &value, &used) == 2) {
		if (!strcmp(word, "width"))
			width = value;
		else if (!strcmp(word, "speed"))
			speed = value;
		else
			break;
		rest += used;
	}
	if (!num || rest[strspn(rest, " \t\r\n")] || (!width && !speed) ||
	    sma_enable(f, f->nodes[node].first + num, width, speed)) {
		fprintf(out, "# want \"node\"[port] width= speed=, of what the port supports\n");
		return -1;
	}
	return 0;
}
