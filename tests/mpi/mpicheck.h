/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Parts of mpicheck: each does one round of something and ends the job at the first wrong byte. */
#ifndef MPICHECK_H
#define MPICHECK_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the largest message; every buffer has room for it. */
#define MAX_BYTES	(1u << 20)

extern int my_rank, ranks;

/* What a message's bytes are made of: who sends to whom, in which round, and for what. */
uint64_t pattern_key(unsigned int what, int from, int to, uint64_t round);
uint64_t pattern_word(uint64_t key, uint64_t index);
void pattern_fill(void *buf, size_t bytes, uint64_t key);
/* Ends the job with a report when a byte is not the pattern's; counts the bytes that were right. */
void pattern_verify(const char *what, const void *buf, size_t bytes, uint64_t key);
/* The same for one number. */
void verify_number(const char *what, uint64_t index, uint64_t found, uint64_t expected);

extern uint64_t verified_bytes;

/* Point to point: ring both ways, wildcards, synchronous sends, a burst of unexpected ones. */
void exchange_round(uint64_t round, size_t bytes);
/* bcast, allreduce, alltoall, allgather, reduce_scatter, barrier, blocking and not. */
void collective_round(uint64_t round, size_t bytes);
/* A stencil over integers, compared with what one process computes alone. */
void stencil_start(void);
void stencil_round(uint64_t round);
void stencil_end(void);
/* Windows: put, get, accumulate, fetch-and-add. */
void window_start(void);
void window_round(uint64_t round, size_t bytes);
void window_end(void);
/* Not in a round by itself: what the papers' benchmarks do, of which the results are verified. */
void rings_round(uint64_t round, size_t bytes);
void sort_start(int keys);
void sort_round(uint64_t round);
void sort_end(void);
void gauss_round(uint64_t round);

#endif /* MPICHECK_H */
