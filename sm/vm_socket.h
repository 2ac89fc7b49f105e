/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The socket for who moves VMs: lines in, lines out. */
#ifndef RSM_VM_SOCKET_H
#define RSM_VM_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

struct rsm;

#define RSM_VM_LINE 256
#define RSM_VM_ANSWER 1024

/**
 * struct rsm_vm_line - what somebody has said
 * @who: number of the connection
 * @text: without the newline
 */
struct rsm_vm_line {
	uint32_t who;
	char text[RSM_VM_LINE];
};

int rsm_vm_socket_open(struct rsm *rsm, const char *path);
void rsm_vm_socket_close(void);
bool rsm_vm_socket_next(struct rsm_vm_line *line);
void rsm_vm_socket_answer(uint32_t who, const char *text);

#endif
