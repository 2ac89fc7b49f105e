/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The firmware of a machine that ends at once with 0x10 at port 0xf4, if its processor does what a
 * kernel asks of it: from real mode to long mode, and CMPXCHG16B, which KVM does not emulate.
 */
#define ROM	0xf0000
#define TABLES	0x1000		/* PML4, page directory pointers, page directory */
#define WORD	0x5000

	.code16
start:
	cli
	cld
	xorl %eax, %eax
	movw %ax, %es
	movw $TABLES, %di
	movw $0x3000 / 4, %cx
	rep stosl
	movl $TABLES + 0x1000 + 3, %es:TABLES
	movl $TABLES + 0x2000 + 3, %es:TABLES + 0x1000
	movl $0x83, %es:TABLES + 0x2000		/* 2 MB from 0 on, ROM among them */
	lgdtl %cs:descriptor - start
	movl %cr4, %eax
	orl $0x20, %eax				/* PAE */
	movl %eax, %cr4
	movl $TABLES, %eax
	movl %eax, %cr3
	movl $0xc0000080, %ecx			/* EFER */
	rdmsr
	orl $0x100, %eax			/* LME */
	wrmsr
	movl %cr0, %eax
	orl $0x80000001, %eax			/* PG, PE */
	movl %eax, %cr0
	ljmpl $8, $ROM + in_long_mode - start

	.code64
in_long_mode:
	movl $WORD, %edi
	lock cmpxchg16b (%rdi)
	movb $0x10, %al
	outb %al, $0xf4
	hlt

	.balign 8
table:
	.quad 0, 0x00af9b000000ffff
descriptor:
	.word descriptor - table - 1
	.long ROM + table - start

	.org 0xfff0
	.code16
	ljmpw $ROM >> 4, $0			/* to start */
	.org 0x10000
