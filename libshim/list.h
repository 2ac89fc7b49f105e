/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A doubly linked list; an entry that is in no list points to itself. */
#ifndef RP_LIST_H
#define RP_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_node {
	struct list_node *next, *prev;
};

struct list_head {
	struct list_node n;
};

static inline void list_init(struct list_head *h)
{
	h->n.next = h->n.prev = &h->n;
}

static inline void list_node_init(struct list_node *n)
{
	n->next = n->prev = n;
}

static inline void list_add_tail(struct list_head *h, struct list_node *n)
{
	n->prev = h->n.prev;
	n->next = &h->n;
	h->n.prev->next = n;
	h->n.prev = n;
}

static inline void list_add_head(struct list_head *h, struct list_node *n)
{
	n->next = h->n.next;
	n->prev = &h->n;
	h->n.next->prev = n;
	h->n.next = n;
}

static inline void list_del(struct list_node *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_node_init(n);
}

static inline bool list_empty(const struct list_head *h)
{
	return h->n.next == &h->n;
}

#define list_entry(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#define list_first(head, type, member) list_entry((head)->n.next, type, member)

#define list_for_each(pos, head, member)						\
	for (pos = list_entry((head)->n.next, __typeof__(*pos), member);		\
	     &pos->member != &(head)->n;						\
	     pos = list_entry(pos->member.next, __typeof__(*pos), member))

#define list_for_each_reverse(pos, head, member)					\
	for (pos = list_entry((head)->n.prev, __typeof__(*pos), member);		\
	     &pos->member != &(head)->n;						\
	     pos = list_entry(pos->member.prev, __typeof__(*pos), member))

#define list_for_each_safe(pos, tmp, head, member)					\
	for (pos = list_entry((head)->n.next, __typeof__(*pos), member),		\
	     tmp = list_entry(pos->member.next, __typeof__(*pos), member);		\
	     &pos->member != &(head)->n;						\
	     pos = tmp, tmp = list_entry(tmp->member.next, __typeof__(*pos), member))

#endif /* RP_LIST_H */
