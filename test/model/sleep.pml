/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sleep.pml - how a consumer that sleeps is woken: ep_sleep of
 * libglex/src/backend/nic/nic.c against emu_ring_bell of emulator/nic/fast.h.
 * One that polls a descriptor: arm.pml.
 *
 * Threads of one endpoint sleep until each has taken its share; senders publish
 * and look whether anybody sleeps, without a fence.  What a sender publishes
 * first lies in its store buffer (`buffered`) and reaches the others when the
 * memory pleases, also after the sender's next loads, its bump of the doorbell
 * and its system call; that is weaker than x86 and than ARM.  A membarrier
 * empties the buffers of one process after the other.  The slots themselves are
 * ring.pml's business: here a queue is a number of things that have arrived.
 *
 *   SLEEPERS, SENDERS, EACH   threads; messages a sender sends (the sleepers
 *                             share them evenly)
 *   CANNOT    0: everybody has membarrier | 1: sender 0 joins without it, which
 *             sets `fences` at any time | 2: the sleepers have none, so `fences`
 *             was set before anybody could know their endpoint
 *
 * Checked: no wake-up is lost.  The kernel's sleep has no time limit here, so a
 * lost one is a deadlock; in the library a nap of 100 ms would hide it.
 * Not covered: signals and time-outs, which only make a sleeper look earlier.
 *
 * Mutations, each of which must be found:
 *   MUT_NO_BARRIER     the sleeper does not make the others order their memory
 *   MUT_TRUST_FENCES   it does not where `fences` is set: a sender that read it
 *                      before may still be on its way
 *   MUT_LOOK_FIRST     the sleeper looks at the queue before it says that it sleeps
 *   MUT_BELL_LATE      it reads the doorbell after it has looked at the queue
 *   MUT_NO_FENCE       a sender does not fence where `fences` is set
 *   MUT_WAKE_FIRST     a sender looks for sleepers before it publishes
 */
#ifndef SLEEPERS
#define SLEEPERS 2
#endif
#ifndef SENDERS
#define SENDERS 2
#endif
#ifndef EACH
#define EACH 2
#endif
#ifndef CANNOT
#define CANNOT 0
#endif
#define SHARE (SENDERS * EACH / SLEEPERS)

byte sleepers, doorbell; /* words of the port */
bool fences = CANNOT == 2;
byte arrived, taken;
byte buffered[SENDERS];

/* the kernel */
bool waits[SLEEPERS];
bool joined = CANNOT != 1; /* sender 0 may send */

/* A processor writes its oldest store back. */
active proctype memory()
{
	byte i;
end:
	do
	:: d_step { buffered[0] > 0 -> buffered[0]--; arrived++ }
#if SENDERS > 1
	:: d_step { buffered[1] > 0 -> buffered[1]--; arrived++ }
#endif
	od
}

inline drain(i)
{
	d_step {
		arrived = arrived + buffered[i];
		buffered[i] = 0
	}
}

inline ring_bell()
{
	f = fences;
#ifndef MUT_NO_FENCE
	if
	:: f -> drain(me)
	:: else -> skip
	fi;
#endif
	seen = sleepers > 0
}

proctype sender(byte me)
{
	byte n;
	bool f, seen;

	me != 0 || joined;
	do
	:: n < EACH ->
#ifdef MUT_WAKE_FIRST
		ring_bell();
		buffered[me]++;
#else
		buffered[me]++;
		ring_bell();
#endif
		if
		:: seen ->
			doorbell++;
			d_step {
				waits[0] = false;
#if SLEEPERS > 1
				waits[1] = false
#endif
			}
		:: else -> skip
		fi;
		n++
	:: else -> break
	od
}

/* glexd lets a process in that has no membarrier. */
proctype joiner()
{
	if
	:: CANNOT == 1 ->
		fences = true;
		joined = true
	:: else -> skip
	fi
}

inline barrier()
{
#ifdef MUT_TRUST_FENCES
	f = fences;
#endif
	if
	:: CANNOT != 2 && !f ->
		/* Sender 0 does not take part where it has none. */
		if
		:: CANNOT != 1 -> drain(0)
		:: else -> skip
		fi;
#if SENDERS > 1
		drain(1)
#endif
	:: else -> skip
	fi
}

proctype sleeper(byte me)
{
	byte mine, bell;
	bool found, f;

	do
	:: mine == SHARE -> break
	:: d_step { mine < SHARE && arrived > taken -> taken++; mine++ }
	:: mine < SHARE && arrived == taken ->
#ifdef MUT_LOOK_FIRST
		found = arrived > taken;
#endif
#ifndef MUT_BELL_LATE
		bell = doorbell;
#endif
		sleepers++;
#ifndef MUT_NO_BARRIER
		barrier();
#endif
#ifndef MUT_LOOK_FIRST
		found = arrived > taken;
#endif
#ifdef MUT_BELL_LATE
		bell = doorbell;
#endif
		if
		:: !found ->
			d_step { waits[me] = doorbell == bell };
			!waits[me]
		:: else -> skip
		fi;
		sleepers--;
		bell = 0;
		found = false
	od
}

init
{
	atomic {
		run joiner();
		run sender(0);
#if SENDERS > 1
		run sender(1);
#endif
#if SLEEPERS > 1
		run sleeper(1);
#endif
		run sleeper(0)
	}
}
