/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that sleep (docs/design/001-claims-and-rings.md, "Sleeping: Workers"): two workers that spin, park and may be killed at any step,
 * the parent that publishes TASKS tasks, the service thread.
 *
 * Stores are delayed as on x86: a plain store goes into a store buffer of one entry that empties at any later time; a fence and every
 * locked instruction wait until it is empty. The one plain store of this protocol is the parent's store of tail.
 * A claim is one step here (claims.pml has the steps); a task may never end.
 *
 * Checked when nothing moves any more (monitor): no task is unclaimed while a live worker sleeps, however long the others run.
 *
 * REPLACE: a worker that died is replaced. Without, nobody takes its place.
 */
#ifndef TASKS
#define TASKS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef REPLACE
#define REPLACE 1
#endif

byte tail, taken;            /* armed; claimed */
byte buf_tail; bit buffered; /* the parent's store buffer */
bit parked[2], spinning[2];  /* the masks */
byte fut[2];                 /* the futex words */
bit asleep[2];               /* the kernel's queues */
bit busy[2], dead[2], zombie[2], start[2];
byte kills;

#define WORK (taken < tail)
#define DIE atomic { kills < DEATHS -> kills++; goto die }

proctype worker(byte s)
{
	byte v;
again:
	do
	:: DIE
	:: atomic { WORK -> taken++ }; /* claims and runs: ends, never ends, or dies */
task:
		if
		:: skip
		:: atomic { busy[s] = 1; kills < DEATHS -> kills++; busy[s] = 0; goto die }
		:: DIE
		fi
	:: atomic { !WORK ->
			/* "A worker that spins before it sleeps has a bit in spinning instead" */
			if
			:: spinning[s] = 1
			:: goto park
			fi
		};
#ifdef BUG_CLAIM_BEFORE_BIT
		if
		:: atomic { WORK -> taken++ };
			spinning[s] = 0;
			goto task
		:: DIE
		:: spinning[s] = 0   /* has spun for long enough */
		fi;
#else
		if
		:: WORK || !spinning[s] /* takes its own bit away before it claims */
		:: DIE
		:: skip              /* has spun for long enough */
		fi;
		if
		:: DIE
#ifndef BUG_TAKEN_BIT_IGNORED
		:: atomic { !spinning[s] -> goto again } /* fetch_and: a waker has it: looks for work with no bit set before it sleeps */
#endif
		:: atomic {
#ifndef BUG_TAKEN_BIT_IGNORED
				spinning[s] ->
#endif
				spinning[s] = 0
			}
		fi;
#endif
park:
		v = fut[s];
		if
		:: DIE
#ifdef BUG_NO_RECHECK
		:: atomic { !WORK -> parked[s] = 1 }
#else
		:: parked[s] = 1     /* "set the bit (seq_cst RMW), ..." */
#endif
		fi;
		if
		:: DIE
#ifdef BUG_NO_RECHECK
		:: skip
#else
#ifdef BUG_CLAIM_BEFORE_BIT
		:: atomic { WORK -> taken++; v = 0 };
			parked[s] = 0;
			goto task
#else
		:: WORK -> goto unpark /* "... look again at all tails, ..." */
#endif
		:: !WORK
#endif
		fi;
		atomic {             /* "... and only then wait on the word": compares and blocks in one step */
			if
			:: fut[s] == v -> asleep[s] = 1
			:: else
			fi;
			v = 0
		};
		if
		:: !asleep[s]
		:: atomic { kills < DEATHS -> kills++; asleep[s] = 0; goto die }
		fi;
unpark:
		v = 0;
		if
		:: DIE
		:: parked[s] = 0     /* takes the bit away if it is still there */
		fi
	od;
die:
	atomic { v = 0; dead[s] = 1; zombie[s] = 1 };
	start[s] -> start[s] = 0;
	goto again
}

/* the store buffer of the parent empties at any time */
proctype memory()
{
	do
	:: atomic { buffered -> tail = buf_tail; buffered = 0; buf_tail = 0 }
	od
}

/* "To wake: ... read the mask, take a bit away by fetch_and (whoever took it away owes the wake-up), add one to that worker's word, futex wake" */
inline WAKE_ONE()
{
	do
	:: atomic { spinning[0] || spinning[1] -> /* reads the mask of the spinning, "which wakers take first" */
			if
			:: spinning[0] -> k = 0
			:: spinning[1] -> k = 1
			fi
		};
		atomic { !buffered ->
			if
			:: spinning[k] -> spinning[k] = 0; got = 1
			:: else          /* somebody else took it */
			fi
		};
		if
		:: got -> got = 0; break
		:: else
		fi
	:: !spinning[0] && !spinning[1] ->
		if
		:: atomic { parked[0] || parked[1] ->
				if
				:: parked[0] -> k = 0
				:: parked[1] -> k = 1
				fi
			};
			atomic { !buffered ->
				if
				:: parked[k] -> parked[k] = 0; got = 1
				:: else
				fi
			};
			if
			:: got ->
				fut[k] = (fut[k] + 1) % 8;
				asleep[k] = 0; /* futex wake */
				got = 0;
				break
			:: else
			fi
		:: !parked[0] && !parked[1] -> break
		fi
	od;
	k = 0
}

proctype parent()
{
	byte n, k;
	bit got;
	do
	:: n < TASKS ->
		n++;
		atomic { !buffered -> buf_tail = n; buffered = 1 }; /* "publish, ..." */
#ifndef NO_FENCE
		!buffered;           /* "... full fence, ..." */
#endif
		WAKE_ONE()
	:: else -> break
	od
}

proctype service()
{
	byte s, k;
	bit got;
	do
	:: atomic { zombie[0] || zombie[1] -> s = (zombie[0] -> 0 : 1); zombie[s] = 0 };
#if REPLACE && defined(BUG_CLEAR_LATE)
		atomic { dead[s] = 0; start[s] = 1 };
#endif
#ifndef BUG_STALE_BITS
		spinning[s] = 0;     /* "The parent clears the bits of the dead" */
		parked[s] = 0;
#endif
#ifndef BUG_NO_PASS_ON
		WAKE_ONE();          /* the dead one may have been owed a wake-up: passes it on */
#endif
#if REPLACE && !defined(BUG_CLEAR_LATE)
		atomic { dead[s] = 0; start[s] = 1 };
#endif
		s = 0
	od
}

proctype monitor()
{
	timeout;
	assert(!buffered && !zombie[0] && !zombie[1]);
	/* busy: in a task that never ends */
	assert(taken == TASKS || ((busy[0] || dead[0]) && (busy[1] || dead[1])))
}

init
{
	atomic {
		select(kills : 0 .. DEATHS); /* how many of the deaths are spent already */
		run worker(0); run worker(1); run memory(); run parent(); run service(); run monitor()
	}
}
