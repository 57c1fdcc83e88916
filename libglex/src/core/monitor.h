/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * monitor.h - the monitors that memwatch.c chooses from.
 *
 * start(): 0, or a sentence that says why not, as static text.
 */
#ifndef GLEXI_MONITOR_H
#define GLEXI_MONITOR_H

#include "core/memwatch.h"

/* libglex-memhooks.so, if it is in the process and sees what it should. */
const char *glexi_hooks_start(void);
bool glexi_hooks_present(void);

/* userfaultfd. */
const char *glexi_uffd_start(void);
void glexi_uffd_stop(void);
bool glexi_uffd_allowed(void);
bool glexi_uffd_track(uint64_t start, uint64_t end);
void glexi_uffd_settle(void);
void glexi_uffd_forked(void);

/* Something that is not known yet is open, as from begin to end of a change. */
void glexi_memwatch_hold(void);
void glexi_memwatch_unhold(void);

#endif /* GLEXI_MONITOR_H */
