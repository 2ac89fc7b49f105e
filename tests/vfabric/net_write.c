// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A topology as a file that net_read.c reads, and ibsim. */
#include "net.h"

void net_write(const struct net *net, FILE *file)
{
	static const char *const word[] = { "", "Hca", "Switch", "Rt" };
	static const char *const guid[] = { "", "caguid", "switchguid", "rtguid" };

	for (unsigned int i = 0; i < net->n; i++) {
		const struct net_node *node = &net->nodes[i];

		fprintf(file, "%s=0x%llx\n%s\t%u \"%s\"", guid[node->type],
			(unsigned long long)node->guid, word[node->type], node->nports, node->id);
		fprintf(file, "\t# \"%s\"%s\n", node->desc, node->shared ? " shared port" : "");
		for (unsigned int p = 1; p <= node->nports; p++) {
			const struct net_port *port = &node->ports[p];

			if (port->peer == NET_NONE)
				continue;
			fprintf(file, "[%u]\t\"%s\"[%u]\tw=%u s=%u e=%u", p,
				net->nodes[port->peer].id, port->peer_port, port->width,
				port->speed, port->ext);
			if (port->length)
				fprintf(file, " l=%u.%02u", port->length / 100, port->length % 100);
			fputc('\n', file);
		}
		fputc('\n', file);
	}
}
