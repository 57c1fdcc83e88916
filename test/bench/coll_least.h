/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll_least.h - the same collectives by a program that does nothing else.
 *
 * Ranks of one machine, a few lines of shared memory, no library in between: what waiting for each other costs
 * itself.  Where ranks outnumber processors that is sched_yield, by all but who comes last of its processor.  Hardly
 * anything is left that a library could leave out.
 */
#ifndef COLL_LEAST_H
#define COLL_LEAST_H

/* Collective; all ranks must share memory.  0: they do not. */
int least_open(void);
void least_close(void);

/*
 * Seconds that it takes to change from one process to another on one processor: ranks 0 and 1 hand a word to each other
 * there, while the others sleep.  Once.
 */
double least_turn(void);

/* Words of 8 bytes.  Roots must take turns: that is what keeps a line from being written before all have read it. */
void least_barrier(void);
void least_bcast(double *word, int root);
void least_allreduce(const double *mine, double *sum);
void least_reduce(const double *mine, double *sum, int root);

/* An allreduce in two parts, between which a rank may do what it likes. */
void least_begin(const double *mine);
void least_end(double *sum);

#endif /* COLL_LEAST_H */
