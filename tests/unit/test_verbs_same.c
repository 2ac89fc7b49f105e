// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the mock does it does under the shim, too. */
#define CQ_EXTRA 64
#include "test_mock.c"
