/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arm.pml - how who polls the descriptor of an endpoint is woken: nic_ep_arm and
 * open_own of libglex/src/backend/nic/intr.c against emu_ring_bell of
 * emulator/nic/fast.h, emu_wake and emu_interrupt of emulator/nic/intr.c.
 *
 * Senders publish MPs and look, without a fence, whether the port is armed; the
 * last thing a sender sends may be an interrupt.  Stores lie in buffers as in
 * sleep.pml.  The owner asks for the descriptor at any time, then arms, looks,
 * polls, clears and takes, in turn, until it has everything.
 *
 *   SENDERS, EACH   as in sleep.pml
 *   INTR      1: the last of each sender is an interrupt
 *   CANNOT    0: everybody has membarrier | 1: sender 0 joins without it, which
 *             sets `fences` at any time | 2: the owner has none
 *
 * Checked: nothing is missed.  The poll has no time limit, here as in programs,
 * so a wake-up that is lost is a deadlock.
 * Not covered: senders that die (glexd wakes in their place), several threads that arm.
 *
 * Mutations, each of which must be found:
 *   MUT_NO_BARRIER     who arms does not make the others order their memory
 *   MUT_TRUST_FENCES   it does not where `fences` is set
 *   MUT_LOOK_FIRST     it looks at the queue before it arms
 *   MUT_NO_FENCE       a sender does not fence where `fences` is set
 *   MUT_NO_TURNS       a sender ends whatever arming there is, not that which it has answered
 *   MUT_PLAIN_INTR     a sender loads `intr` where it should change it
 *   MUT_NO_LOOK        who opens the descriptor does not look for earlier interrupts
 */
#ifndef SENDERS
#define SENDERS 2
#endif
#ifndef EACH
#define EACH 2
#endif
#ifndef INTR
#define INTR 0
#endif
#ifndef CANNOT
#define CANNOT 0
#endif

byte armed, turns; /* 0, or the turn of the arming */
bool intr, fences = CANNOT == 2;
byte arrived, taken, intr_arrived, intr_taken;
byte buffered[SENDERS], intr_buffered[SENDERS];
bool readable; /* the eventfd */
bool joined = CANNOT != 1;

inline drain(i)
{
	d_step {
		arrived = arrived + buffered[i];
		buffered[i] = 0;
		intr_arrived = intr_arrived + intr_buffered[i];
		intr_buffered[i] = 0
	}
}

/* A processor writes a store back. */
active proctype memory()
{
end:
	do
	:: d_step { buffered[0] > 0 -> buffered[0]--; arrived++ }
	:: d_step { intr_buffered[0] > 0 -> intr_buffered[0]--; intr_arrived++ }
#if SENDERS > 1
	:: d_step { buffered[1] > 0 -> buffered[1]--; arrived++ }
	:: d_step { intr_buffered[1] > 0 -> intr_buffered[1]--; intr_arrived++ }
#endif
	od
}

inline send_mp()
{
	buffered[me]++;
	f = fences;
#ifndef MUT_NO_FENCE
	if
	:: f -> drain(me)
	:: else -> skip
	fi;
#endif
	word = armed;
	if
	:: word != 0 && arrived + buffered[me] > taken ->
		readable = true;
#ifdef MUT_NO_TURNS
		word = armed;
		d_step { armed = 0; arrived = arrived + buffered[me]; buffered[me] = 0 }
#else
		d_step {
			if
			:: armed == word -> armed = 0; arrived = arrived + buffered[me]; buffered[me] = 0
			:: else -> skip
			fi
		}
#endif
	:: else -> skip
	fi
}

inline send_intr()
{
	intr_buffered[me]++;
#ifndef MUT_PLAIN_INTR
	drain(me); /* what an atomic change does that releases */
#endif
	if
	:: intr -> readable = true
	:: else -> skip
	fi
}

proctype sender(byte me)
{
	byte n, word;
	bool f;

	me != 0 || joined;
	do
	:: n < EACH - INTR -> send_mp(); n++
	:: else -> break
	od;
#if INTR
	send_intr()
#endif
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

proctype owner()
{
	bool found, f;

	/* nic_ep_fd: glexd sets `intr`, and has seen what those have sent who changed it before */
	intr = true;
#ifndef MUT_NO_LOOK
	if
	:: intr_arrived > intr_taken -> readable = true
	:: else -> skip
	fi;
#endif
	do
	:: taken + intr_taken == SENDERS * EACH -> break
	:: else ->
#ifdef MUT_LOOK_FIRST
		found = arrived > taken;
#endif
		d_step { turns++; armed = turns };
#ifndef MUT_NO_BARRIER
		barrier();
#endif
#ifndef MUT_LOOK_FIRST
		found = arrived > taken;
#endif
		if
		:: found -> armed = 0
		:: else ->
			readable;
			readable = false;
			intr_taken = intr_arrived
		fi;
		found = false;
		taken = arrived
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
		run owner()
	}
}
