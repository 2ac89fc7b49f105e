// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Packets that real HCAs were sent, by path and data VL: as they leave their last switch, so none that is lost before. */
#include "ext_cable.h"

void ext_paths_count(struct ext_paths *paths, uint16_t slid, uint16_t dlid, uint8_t vl)
{
	unsigned int at = (slid * 31u + dlid) * 31u + vl;

	for (unsigned int i = 0; i < EXT_PATHS; i++, at++) {
		struct ext_path *path = &paths->all[at % EXT_PATHS];

		if (!path->packets)
			*path = (struct ext_path) { slid, dlid, vl, 0 };
		else if (path->slid != slid || path->dlid != dlid || path->vl != vl)
			continue;
		path->packets++;
		return;
	}
	paths->others++;
}

void ext_paths_print(const struct fabric *f, FILE *file)
{
	if (!f->ext)
		return;
	for (unsigned int i = 0; i < EXT_PATHS; i++) {
		const struct ext_path *path = &f->ext->paths.all[i];

		if (path->packets)
			fprintf(file, "%u %u VL%u %llu\n", path->slid, path->dlid, path->vl,
				(unsigned long long)path->packets);
	}
	if (f->ext->paths.others)
		fprintf(file, "# %llu of more paths\n", (unsigned long long)f->ext->paths.others);
}
