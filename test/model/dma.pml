/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dma.pml - the descriptor queues of NORMAL ports and the DMA engine's bell:
 * dq_push, dq_ring and choose of libglex/src/backend/nic/post.c against
 * emulator/glexd/dma.c, and a poster that is killed at any instruction.
 *
 * Two ports on one NIC, a poster each; the engine, which may end a quantum after
 * each descriptor; glexd's control thread, which closes the port of a poster
 * that died.  Each shared access of the C code is one step.  The store that
 * announces the engine's sleep lies in a store buffer until something orders it:
 * that is what sequential consistency of DQ-R4 and DQ-A3 is there for.
 *
 *   POSTS       descriptors each poster posts, by turns small and long ones; a
 *               small one that finds the queue empty is executed by the poster
 *   CAP, KILL   size of a queue; 1: poster 0 may be killed
 *
 * Checked: each request is executed once, whole, in the order of its port; what
 * the poster executes itself overtakes nothing; nobody touches a closed port;
 * nothing is left undone while the engine sleeps (its sleep has no time limit
 * here); no deadlock.
 * Not covered: BUSY (a poster waits for room instead), more than one NIC.
 *
 * Mutations, each of which must be found:
 *   MUT_TAIL_FIRST     the tail moves before the descriptor is written
 *   MUT_LOOK_FIRST     the engine looks at the bells before it says that it sleeps
 *   MUT_PLAIN_ASLEEP   saying so is a plain store
 *   MUT_BELL_FIRST     the poster looks at asleep before it sets its port's bit
 *   MUT_FORGET_ACTIVE  the engine forgets a port whose quantum ended early
 *   MUT_HEAD_FIRST     a descriptor's slot is given back before it is executed
 *   MUT_NO_LOCK        the engine does not hold the lock during a quantum
 */
#ifndef POSTS
#define POSTS 3
#endif
#ifndef CAP
#define CAP 2
#endif
#ifndef KILL
#define KILL 1
#endif
#define PORTS 2

byte tail[PORTS], head[PORTS];
byte queue[PORTS * CAP]; /* 0: being written */
#define DESC(p, n) queue[(p)*CAP + (n) % CAP]

byte pending, unfinished, todo; /* bit of a port */
byte bell;
bool asleep, asleep_buffered;
bool engine_waits;
bool lock;
bool open[PORTS] = true;

bool killed[PORTS];
byte done[PORTS]; /* requests executed */
byte ended;

#define BIT(p) (1 << (p))
#define SMALL(n) ((n) % 2 == 0)

/* Request n of port p is executed: not before all earlier ones. */
inline execute(p, n)
{
	d_step {
		assert(done[p] == n);
		done[p]++
	}
}

inline look_at_asleep()
{
	seen = asleep
}

inline ring()
{
#ifdef MUT_BELL_FIRST
	look_at_asleep();
#endif
	pending = pending | BIT(me);
#ifndef MUT_BELL_FIRST
	look_at_asleep();
#endif
	if
	:: seen ->
		bell++;
		engine_waits = false
	:: else -> skip
	fi
}

inline push()
{
#ifdef MUT_TAIL_FIRST
	tail[me]++;
	DESC(me, tail[me] - 1) = n + 1;
#else
	DESC(me, tail[me]) = n + 1;
	tail[me]++;
#endif
	ring()
}

proctype poster(byte me)
{
	byte n;
	bool seen;

	{
		do
		:: n < POSTS ->
			if
			:: SMALL(n) && tail[me] == head[me] -> execute(me, n)
			:: else ->
				tail[me] - head[me] < CAP; /* else BUSY */
				push()
			fi;
			seen = false;
			n++
		:: else -> break
		od;
		tail[me] == head[me] /* glex_destroy_ep waits for it */
	} unless { killed[me] };
	if
	:: killed[me] ->
		/* The control thread, told by the socket's end. */
		atomic {
			!lock;
			lock = true
		};
		open[me] = false;
		lock = false
	:: else -> assert(done[me] == POSTS)
	fi;
	ended++;
	/* glexd leaves with its last client. */
	if
	:: ended == PORTS ->
		bell++;
		engine_waits = false
	:: else -> skip
	fi
}

active proctype killer()
{
	if
	:: KILL -> killed[0] = true
	:: skip
	fi
}

/* The engine's processor writes its store back. */
active proctype memory()
{
end:
	do
	:: d_step { asleep_buffered -> asleep_buffered = false; asleep = true }
	od
}

inline acquire()
{
#ifndef MUT_NO_LOCK
	atomic {
		!lock;
		lock = true
	}
#else
	skip
#endif
}

inline release()
{
#ifndef MUT_NO_LOCK
	lock = false
#else
	skip
#endif
}

/* serve_port(): all there is, or less. */
inline serve(p)
{
	h = head[p];
	t = tail[p];
	do
	:: h == t -> break
	:: h != t ->
		d_step {
			d = DESC(p, h);
			DESC(p, h) = 0 /* so that one that is not yet written is seen */
		};
		assert(d != 0 && open[p]);
#ifdef MUT_HEAD_FIRST
		head[p] = h + 1;
		execute(p, d - 1);
#else
		execute(p, d - 1);
		head[p] = h + 1;
#endif
		h++;
		d = 0;
		if
		:: h != t -> /* the quantum is spent */
#ifndef MUT_FORGET_ACTIVE
			unfinished = unfinished | BIT(p);
#endif
			break
		:: skip
		fi
	od;
	h = 0;
	t = 0
}

inline serve_round()
{
	acquire();
	todo = unfinished;
	worked = unfinished != 0;
	unfinished = 0;
	if
	:: pending != 0 ->
		d_step {
			todo = todo | pending;
			pending = 0
		};
		worked = true
	:: else -> skip
	fi;
	if
	:: todo & 1 ->
		if
		:: open[0] -> serve(0)
		:: else -> skip
		fi
	:: else -> skip
	fi;
	if
	:: todo & 2 ->
		if
		:: open[1] -> serve(1)
		:: else -> skip
		fi
	:: else -> skip
	fi;
	todo = 0;
	release()
}

inline say_asleep()
{
#ifdef MUT_PLAIN_ASLEEP
	asleep_buffered = true
#else
	asleep = true
#endif
}

active proctype engine()
{
	byte h, t, d, before;
	bool worked, any;

	do
	:: ended == PORTS -> break
	:: else ->
		serve_round();
		if
		:: worked -> worked = false
		:: else ->
			before = bell;
#ifdef MUT_LOOK_FIRST
			any = pending != 0 || ended == PORTS;
			say_asleep();
#else
			say_asleep();
			any = pending != 0 || ended == PORTS;
#endif
			if
			:: any -> skip
			:: else ->
				d_step { engine_waits = bell == before };
				!engine_waits
			fi;
			d_step {
				asleep_buffered = false;
				asleep = false;
				any = false;
				before = 0
			}
		fi
	od
}

init
{
	atomic {
		run poster(0);
		run poster(1)
	}
}
