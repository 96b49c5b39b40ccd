/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A future of submit (docs/design/001-claims-and-rings.md, "Boards: claims" and "Sleeping: A future"): one entry, one worker that may be
 * killed at any step and is replaced, GETTERS threads that wait for the future, a thread that cancels (CANCEL), a thread that sends a
 * signal to all waiters (SIGNALS times), the service thread.
 *
 * Checked: when nothing moves any more (monitor), every getter has returned, save when the task itself never ends, and even then no
 * signal is left unseen. The outcome is the truth: done only with a whole result, lost only when the worker that claimed it died,
 * cancelled only when the cancel said so; a cancelled task never runs and a task that runs is not cancelled.
 *
 * POKE_COUNT: `poked` is a counter of events instead of a flag that a sleeper clears (needed as soon as GETTERS > 1).
 */
#ifndef GETTERS
#define GETTERS 1
#endif
#ifndef SIGNALS
#define SIGNALS 1
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef CANCEL
#define CANCEL 1
#endif

/* state word: phase 3 bits, waited 1 bit, poked (1 bit, or a counter), owner. The ticket is left out: the entry is not used twice. */
#define ARMED 1
#define CLAIMED 2
#define DONE 3
#define LOST 4
#define CANCELLED 5
#define WAITED 8
#define POKED 16
#define POKES 112            /* bits of the counter */
#define OWN 128
#define PHASE(w) ((w) & 7)
#define FLAGS(w) ((w) & 120)
#define OWNER(w) ((w) / OWN)
#define PENDING(w) (PHASE(w) == ARMED || PHASE(w) == CLAIMED)

short word = ARMED;
bit asleep[GETTERS];         /* the kernel's queue for the word */
bit registered[GETTERS];     /* registered sleepers: known to whoever announces an event */
byte sig[GETTERS];           /* signals sent and not yet seen */
bit returned[GETTERS];
byte result;                 /* result in the entry: 0 none, 1 half, 2 whole */
bit cancelled, ran, hangs, doomed, killed, zombie, start;
byte inc = 1, died_holding;

#if GETTERS > 1
#define WAKE_ALL d_step { asleep[0] = 0; asleep[1] = 0 }
#else
#define WAKE_ALL asleep[0] = 0
#endif

proctype worker()
{
	short w;
again:
	{
		w = 0;
look:
		w = word;            /* the cursor has come to the entry */
		if
		:: PHASE(w) == ARMED ->
			atomic {         /* claim: the flags stay */
				if
#ifdef BUG_CLAIM_DROPS_FLAGS
				:: word == w -> word = CLAIMED + inc * OWN
#else
				:: word == w -> word = CLAIMED + FLAGS(w) + inc * OWN
#endif
#ifdef BUG_LOST_CAS_SKIPS
				:: else -> goto idle /* the words of the note: "a lost CAS -> cursor + 1" */
#else
				:: else -> goto look /* lost to a flag: it may still be armed */
#endif
				fi
			};
			d_step { assert(!cancelled); ran = 1 }; /* the task runs */
			if
			:: skip
			:: hangs = 1; false /* it never ends (but can be killed) */
			fi;
			result = 1;
			result = 2;      /* "the result is written into the entry itself" */
			/* "stores done by an exchange ..." */
#ifdef BUG_DONE_BY_STORE
			w = word;
			d_step { word = DONE + FLAGS(w) + inc * OWN; w = FLAGS(w) };
#else
			d_step { w = FLAGS(word); assert(PHASE(word) == CLAIMED && OWNER(word) == inc); word = DONE + w + inc * OWN };
#endif
			if               /* "... and wakes the sleeper if waited was set" */
			:: w & WAITED -> WAKE_ALL
			:: else
			fi
		:: else
		fi;
idle:
		w = 0;
		false                /* waits for more tasks */
	} unless { killed };
	d_step { w = 0; hangs = 0; zombie = 1 };
	start -> start = 0;
	goto again
}

proctype killer()
{
	byte k;
	do
	:: k < DEATHS && !doomed -> doomed = 1; killed = 1; k++
	:: break
	od
}

/* sets poked, "so a futex wait that has not begun yet returns at once", and wakes */
inline POKE(v)
{
	do
	:: v = word;
		if
		:: PENDING(v) ->
			atomic {
				if
#ifdef BUG_POKE_NO_FLAG
				:: word == v -> break
#else
#ifdef POKE_COUNT
				:: word == v -> word = (v & ~POKES) | (((v & POKES) + POKED) & POKES); break
#else
				:: word == v -> word = v | POKED; break
#endif
#endif
				:: else
				fi
			}
		:: else -> break
		fi
	od;
	v = 0;
	WAKE_ALL
}

proctype service()
{
	short v;
	do
#ifdef BUG_NOTICE_EARLY
	:: doomed ->
#else
	:: zombie ->             /* reaped: it writes no more */
#endif
		do                   /* words that carry the dead incarnation are what it had claimed: lost */
		:: v = word;
			if
			:: PHASE(v) == CLAIMED && OWNER(v) == inc ->
				atomic {
					if
					:: word == v -> word = LOST + FLAGS(v) + OWNER(v) * OWN; died_holding = inc; break
					:: else      /* a getter has set a flag meanwhile */
					fi
				}
			:: else -> break
			fi
		od;
#ifdef BUG_NO_DEATH_WAKE
		if                   /* wakes only for what it has marked itself */
		:: died_holding == inc -> WAKE_ALL
		:: else
		fi;
#else
		POKE(v);             /* a death concerns all waiters: it may have died after the exchange, before the wake-up */
#endif
		zombie;
		d_step { inc++; v = 0; zombie = 0; killed = 0; doomed = 0; start = 1 }
	od
}

proctype getter(byte g)
{
	short w;
#ifndef BUG_REGISTER_LATE
	registered[g] = 1;
#endif
	do
	:: w = word;
		if
		:: !PENDING(w) -> break
#ifndef POKE_COUNT
		/* poked is taken away before the events are looked at, never after */
#ifndef BUG_POKED_STAYS
		:: PENDING(w) && (w & POKED) -> d_step { if :: word == w -> word = (w & ~POKED) :: else fi; w = 0 }
#endif
		:: PENDING(w) && !(w & POKED) && !(w & WAITED) ->
#else
		:: PENDING(w) && !(w & WAITED) ->
#endif
			/* "Sets waited in the state word by CAS while the phase is armed or claimed" */
			d_step { if :: word == w -> word = w | WAITED :: else fi; w = 0 }
#ifdef POKE_COUNT
		:: PENDING(w) && (w & WAITED) ->
#else
#ifdef BUG_POKED_STAYS
		:: PENDING(w) && (w & (WAITED | POKED)) ->
#else
		:: PENDING(w) && !(w & POKED) && (w & WAITED) ->
#endif
#endif
			if
			:: sig[g] > 0 -> d_step { sig[g] = 0; w = 0 } /* handles the signal, goes on waiting */
			:: else ->
#ifdef BUG_REGISTER_LATE
				registered[g] = 1;
#endif
				/* futex wait on the low half of the word: compares and blocks in one step */
				d_step { if :: word == w -> asleep[g] = 1 :: else fi; w = 0 };
				!asleep[g]
			fi
		fi
	od;
	skip;
	d_step {
		assert(PHASE(w) != DONE || result == 2);
		assert(PHASE(w) != LOST || died_holding == OWNER(w));
		assert((PHASE(w) == CANCELLED) == cancelled);
		assert(!(cancelled && ran));
		registered[g] = 0; sig[g] = 0; returned[g] = 1; w = 0
	}
}

proctype canceller()
{
	short w;
	do
	:: break                 /* at any time, or never */
	:: w = word;             /* cancel: CAS(armed -> cancelled) */
		if
		:: PHASE(w) == ARMED ->
#ifdef BUG_CANCEL_BY_STORE
			d_step { word = CANCELLED + FLAGS(w); cancelled = 1 };
			if :: w & WAITED -> WAKE_ALL :: else fi;
			break
#else
			atomic {
				if
				:: word == w -> word = CANCELLED + FLAGS(w); cancelled = 1
				:: else -> w = 0
				fi
			};
			if
			:: w & WAITED -> WAKE_ALL; break
			:: w != 0 && !(w & WAITED) -> break
			:: w == 0        /* again: a flag or a claim came between */
			fi
#endif
		:: else -> break     /* too late */
		fi
	od;
	w = 0
}

/* the event first, then poked in the words of registered sleepers, then the wake-up */
proctype signaller()
{
	byte k;
	short v;
	do
	:: k < SIGNALS ->
		d_step {
			sig[0] = !returned[0];
#if GETTERS > 1
			sig[1] = !returned[1];
#endif
			k++
		};
#if GETTERS > 1
		if :: registered[0] || registered[1] -> POKE(v) :: else fi
#else
		if :: registered[0] -> POKE(v) :: else fi
#endif
	:: else -> break
	od
}

proctype monitor()
{
	byte g;
	timeout;
	for (g : 0 .. GETTERS - 1) {
		assert(returned[g] || hangs);      /* "the getter always returns" */
		assert(returned[g] || sig[g] == 0) /* ... and no event is slept through */
	}
	assert(!(cancelled && ran))
}

init
{
	atomic {
		run worker(); run service(); run getter(0);
#if GETTERS > 1
		run getter(1);
#endif
		if :: DEATHS > 0 -> run killer() :: else fi;
		if :: CANCEL -> run canceller() :: else fi;
		if :: SIGNALS > 0 -> run signaller() :: else fi;
		run monitor()
	}
}
