/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turns.h - programs that are measured side by side work in turns, a few milliseconds each.
 *
 * What a machine gives changes from one second to the next, where its processors are virtual: one program after
 * the other, each meets another machine.  In turns all meet the same.  They share a file of one word, of zeros at
 * first: how many turns are over.  It is the first one's turn, then the second's, ..., the first one's again; who is
 * not at work sleeps.  Who starts them writes TURNS_BROKEN there when one has ended too early: the others
 * would wait for it.  Knows neither GLEX nor MPI.
 */
#ifndef TURNS_H
#define TURNS_H

#include <stdbool.h>
#include <stdint.h>

#define TURNS_BROKEN UINT32_MAX

/*
 * Takes part, as each process of a program does: text is INDEX/COUNT/FILE, this program is the INDEX-th of COUNT, from 0
 * on.  False where that makes no sense, or there is no such file.
 */
bool turns_join(const char *text);

/* Waits until it is this program's turn, and true; alone it always is.  False: the turns are broken. */
bool turns_wait(void);

/* It is over.  By each process of the program when all have done their work; passes says who of them tells the others. */
void turns_pass(bool passes);

#endif /* TURNS_H */
