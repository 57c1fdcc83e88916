/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.c - ring_stress.h from the command line: ring [mode [count [seed]]].
 * Without arguments each mode runs for a second or two.
 */
#include "ring_stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t counts[RING_STRESS_MODES] = {1000000, 600000, 1000000, 600000, 400, 100, 80, 30};

int main(int argc, char **argv)
{
	uint32_t seed = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 1;
	bool found = false, fine = true;

	setvbuf(stdout, NULL, _IONBF, 0); /* what is buffered would be printed by each fork */
	for (int mode = 0; mode < RING_STRESS_MODES; mode++) {
		if (argc > 1 && strcmp(argv[1], "all") && strcmp(argv[1], ring_stress_name(mode)))
			continue;
		found = true;
		fine &= ring_stress(mode, argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : counts[mode], seed);
	}
	if (!found)
		fprintf(stderr,
			"usage: %s [all|thread|threads|process|processes|killed|killed-threads|biased|biased-threads "
			"[count [seed]]]\n",
			argv[0]);
	return found && fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
