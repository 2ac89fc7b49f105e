/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rates in the order of their speed: enum ib_rate is in the order of their invention. */
#ifndef RSM_RATE_H
#define RSM_RATE_H

#include <stdint.h>

/* Place 0 and 1 are no rates (RSM_NO_PATH): 2.5, 5, 10, 14, 20, 25, 28, 30, 40, 50, 56, 60 ... */
static const uint8_t rsm_rates[] = {
	0, 0, 2, 5, 3, 11, 6, 15, 19, 4, 7, 20, 12, 8, 9, 16, 10, 13, 14, 17, 18, 21, 22,
};

#define RSM_N_RATES (sizeof(rsm_rates) / sizeof(rsm_rates[0]))

/* A rate that is not known is taken for the fastest: it never hides a slower one. */
static inline uint8_t rsm_rate_place(uint8_t rate)
{
	for (uint8_t place = 2; place < RSM_N_RATES; place++)
		if (rsm_rates[place] == rate)
			return place;
	return RSM_N_RATES - 1;
}

static inline uint8_t rsm_place_rate(uint8_t place)
{
	return place < RSM_N_RATES ? rsm_rates[place] : 0;
}

#endif
