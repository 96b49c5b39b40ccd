/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that sleep (docs/design/001-claims-and-rings.md, "Sleeping: Workers"; drover/pool/worker_loop.cc, wake.h, Crew::on_end): W workers
 * that spin, park and may be killed at any step, the parent that publishes TASKS tasks, the service thread.
 *
 * Stores are delayed as on x86: a plain store goes into a store buffer of one entry that empties at any later time; a fence and every
 * locked instruction wait until it is empty. The one plain store of this protocol is the parent's store of tail.
 * A claim is one step here (claims.pml has the steps); a task may never end, because it waits for what another one does, say.
 *
 * Checked when nothing moves any more (monitor): no task is unclaimed while a live worker sleeps, however long the others run.
 *
 * REPLACE: a worker that died is replaced. Without, nobody takes its place. REARM: what it had claimed is armed again.
 */
#ifndef W
#define W 2
#endif
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
bit parked[W], spinning[W];  /* the masks */
byte fut[W];                 /* the futex words */
bit asleep[W];               /* the kernel's queues */
bit woken[W];                /* was_woken_ */
bit busy[W], dead[W], zombie[W], start[W];
#ifdef REARM
bit held[W];                 /* has claimed what it has not finished */
#define HOLD(x) held[s] = x
#else
#define HOLD(x) skip
#endif
byte kills;

#define WORK (taken < tail)
#define DIE atomic { kills < DEATHS -> kills++; goto die }
#if W == 2
#define ANY(m) (m[0] || m[1])
#define PICK(x, m) if :: m[0] -> x = 0 :: m[1] -> x = 1 fi
#else
#define ANY(m) (m[0] || m[1] || m[2])
#define PICK(x, m) if :: m[0] -> x = 0 :: m[1] -> x = 1 :: m[2] -> x = 2 fi
#endif

/* wake_workers(1), after its fence: read the mask, take a bit away by fetch_and (whoever took it away owes the wake-up), add one to that
   worker's word, futex wake. `mortal`: a worker does it. */
inline WAKE_ONE(mortal)
{
	do
	:: atomic { mortal && kills < DEATHS -> kills++; goto die }
	:: atomic { ANY(spinning) -> PICK(k, spinning) }; /* "which wakers take first" */
		if
		:: atomic { mortal && kills < DEATHS -> kills++; goto die }
		:: atomic { mortal || !buffered ->
				if
				:: spinning[k] -> spinning[k] = 0; k = 0; break
				:: else -> k = 0 /* somebody else took it */
				fi
			}
		fi
	:: !ANY(spinning) ->
		do
		:: atomic { ANY(parked) -> PICK(k, parked) };
			if
			:: atomic { mortal && kills < DEATHS -> kills++; goto die }
			:: atomic { mortal || !buffered ->
					if
					:: parked[k] -> parked[k] = 0; got = 1
					:: else -> k = 0
					fi
				}
			fi;
			if
			:: got ->
				if
				:: atomic { mortal && kills < DEATHS -> kills++; goto die } /* has taken a bit and wakes nobody */
				:: atomic { fut[k] = (fut[k] + 1) % 4; got = 0 }
				fi;
				if
				:: atomic { mortal && kills < DEATHS -> kills++; goto die }
				:: atomic { asleep[k] = 0; k = 0 } /* futex wake */
				fi;
				break
			:: else
			fi
		:: !ANY(parked) -> break
		od;
		break
	od
}

proctype worker(byte s)
{
	byte v, k;
	bit got;
again:
	do
	:: DIE
	:: atomic { WORK -> taken++; HOLD(1) }; /* serve: claims, ... */
#if !defined(BUG_NO_PASS_ON) && !defined(BUG_PASS_ON_LATE)
		if                   /* ... passes the wake-up on before the task starts, because the task may not end, ... */
		:: woken[s] ->
			woken[s] = 0;
			if
			:: DIE
			:: WORK -> WAKE_ONE(1)
			:: !WORK
			fi
		:: else
		fi;
#endif
task:
		if                   /* ... runs: ends, never ends, or dies */
		:: atomic { HOLD(0) }
		:: atomic { busy[s] = 1; kills < DEATHS -> kills++; busy[s] = 0; goto die }
		:: DIE
		fi;
#ifdef BUG_PASS_ON_LATE
		if
		:: woken[s] ->
			woken[s] = 0;
			if
			:: DIE
			:: WORK -> WAKE_ONE(1)
			:: !WORK
			fi
		:: else
		fi
#endif
	:: !WORK ->              /* idle: short spin, long spin, or none when cores are short; a spin in vain leaves no trace */
		if
		:: spinning[s] = 1
		:: goto park
		fi;
		if
		:: DIE
#ifdef BUG_CLAIM_BEFORE_BIT
		:: atomic { WORK -> taken++; HOLD(1) };
			spinning[s] = 0;
			goto task
#else
		:: WORK || !spinning[s] /* takes its own bit away before it claims */
#endif
		:: !WORK             /* has spun for long enough */
		fi;
		if
		:: DIE
		:: atomic { !spinning[s] -> woken[s] = 1; /* a waker has it */
#ifdef BUG_TAKEN_BIT_IGNORED
				woken[s] = 0
#else
				goto again
#endif
			}
		:: atomic { spinning[s] -> spinning[s] = 0; woken[s] = 0 } /* looks again, or parks */
		fi;
		if
		:: goto again
		:: skip
		fi;
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
		:: WORK -> goto unpark /* "... look again at all tails, ..." */
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
		:: atomic { woken[s] = !parked[s]; parked[s] = 0 } /* takes the bit away if it is still there */
		fi
	od;
die:
	atomic { v = 0; k = 0; got = 0; woken[s] = 0; dead[s] = 1; zombie[s] = 1 };
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
		WAKE_ONE(0)
	:: else -> break
	od;
die:
	skip
}

/* Crew::on_end. It has no store buffer here: of what it stores before its fence others look for nothing. */
proctype service()
{
	byte s, k;
	bit got;
	do
	:: atomic { ANY(zombie) ->
			PICK(s, zombie);
			zombie[s] = 0
		};
#if REPLACE && defined(BUG_CLEAR_LATE)
		atomic { dead[s] = 0; start[s] = 1 };
#endif
#ifndef BUG_STALE_BITS
		parked[s] = 0;       /* "The parent clears the bits of the dead" */
		spinning[s] = 0;
#endif
#ifndef BUG_ROBBED_SLEEPS
		/* the dead one may have taken somebody's bit and not woken it: whoever has none may be asleep without one */
		do
		:: k < W ->
			if
			:: atomic { !parked[k] -> fut[k] = (fut[k] + 1) % 4 };
				atomic { asleep[k] = 0; k++ }
			:: atomic { parked[k] -> k++ }
			fi
		:: k == W -> k = 0; break
		od;
#endif
#ifndef BUG_NO_DEATH_WAKE
		WAKE_ONE(0);         /* the dead one may have been owed a wake-up: passes it on */
#endif
#ifdef REARM
		if
		:: held[s] -> atomic { held[s] = 0; taken-- };
			WAKE_ONE(0)
		:: else
		fi;
#endif
#if REPLACE && !defined(BUG_CLEAR_LATE)
		atomic { dead[s] = 0; start[s] = 1 };
#endif
		s = 0
	od;
die:
	skip
}

proctype monitor()
{
	byte s;
	timeout;
	assert(!buffered && !ANY(zombie));
	atomic {                 /* busy: in a task that never ends */
		for (s : 0 .. W - 1) { assert(taken == TASKS || busy[s] || dead[s]) }
	}
}

init
{
	atomic {
		select(kills : 0 .. DEATHS); /* how many of the deaths are spent already */
		run worker(0); run worker(1);
#if W > 2
		run worker(2);
#endif
		run memory(); run parent(); run service(); run monitor()
	}
}
