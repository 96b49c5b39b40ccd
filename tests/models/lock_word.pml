/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock word (docs/design/004-shared-blocks.md, "Who holds a lock"; drover/sync/lock_word.*): T threads that lock and unlock ROUNDS times,
 * each of which may be killed at any step, holding the lock or waiting for it. Thread 1 sometimes only passes (kPasses): its death is nothing to
 * report. Spinning is left out: it is a take that may fail.
 *
 * Checked: never two living ones inside; whoever dies inside while it guards is reported to the next one that gets in (or to a later one, if that
 * one dies as well), and nothing else is reported; when nothing moves any more and the slices of waiting are over, all who live are through.
 * SLICES=0: sleepers never look again by themselves. Without deaths no wake-up may be lost then; with deaths one may be (a wake-up that a
 * dead one owed or was given), which is why there are slices.
 */
#ifndef T
#define T 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef SLICES
#define SLICES 1
#endif

/* the word: holder (0: free), two flags */
byte holder;
bit sleepers, passes;

bit dead[T + 1], asleep[T + 1], inside[T + 1];
bit owed;                   /* somebody died inside while it guarded, and nobody living was told */
byte kills, through;
bit slice;                  /* slices of waiting end from now on */

#define DIE atomic { kills < DEATHS -> kills++; goto die }

/* wakes one sleeper, if there is one; the kernel chooses */
inline wake_one()
{
	atomic {
		if
		:: asleep[1] -> asleep[1] = 0
		:: asleep[2] -> asleep[2] = 0
#if T > 2
		:: asleep[3] -> asleep[3] = 0
#endif
		:: else
		fi
	}
}

inline got_in(died)
{
	assert(!died || owed);                         /* nothing else is reported */
	assert(!owed || died);                         /* and this is */
	assert(!inside[1] || dead[1] || me == 1);
	assert(!inside[2] || dead[2] || me == 2);
#if T > 2
	assert(!inside[3] || dead[3] || me == 3);
#endif
	inside[me] = 1
}

proctype thread(byte me)
{
	byte seen, rounds, old;
	bit seen_sleepers, seen_passes, mark, pass, died;

	do
	:: rounds == ROUNDS -> break
	:: rounds < ROUNDS ->
		mark = 0;
		pass = 0;
		if
		:: skip
		:: me == 1 -> pass = 1
		fi;
again:
		if                      /* the fast path: CAS from free, with no flags */
		:: DIE
		:: atomic { holder == 0 && !sleepers -> holder = me; sleepers = mark; passes = pass; got_in(0); goto locked }
		:: atomic { holder != 0 || sleepers -> seen = holder; seen_sleepers = sleepers; seen_passes = passes }
		fi;
		if
		:: seen == 0 || dead[seen] ->                /* nobody, or a dead one: CAS it to me */
			died = (seen != 0 && !seen_passes);
#ifndef BUG_TAKER_PASSES
			pass = (died -> 0 : pass);           /* should I die too, the next one must hear of it */
#endif
			if
			:: DIE
#ifdef BUG_STORE
			:: atomic { holder = me; sleepers = mark || seen_sleepers; passes = pass; got_in(died) }
#else
			:: atomic {
				if
				:: holder == seen && sleepers == seen_sleepers && passes == seen_passes ->
					holder = me;
					sleepers = mark || seen_sleepers;
					passes = pass;
					got_in(died)
				:: else -> goto again
				fi }
#endif
			fi;
			goto locked
		:: else
		fi;
		if                      /* say that somebody sleeps ... */
		:: DIE
		:: atomic {
			if
			:: holder == seen && sleepers == seen_sleepers && passes == seen_passes ->
#ifndef BUG_NO_SIGN
				sleepers = 1
#endif
			:: else -> goto again
			fi }
		fi;
		if                      /* ... and sleep, if the word is still the same */
		:: DIE
#ifdef BUG_NO_COMPARE
		:: atomic { asleep[me] = 1 }
#else
		:: atomic {
			if
#ifdef BUG_NO_SIGN
			:: holder == seen && passes == seen_passes -> asleep[me] = 1
#else
			:: holder == seen && sleepers && passes == seen_passes -> asleep[me] = 1
#endif
			:: else
			fi }
#endif
		fi;
		if
		:: atomic { kills < DEATHS -> kills++; asleep[me] = 0; goto die }
		:: !asleep[me]
#if SLICES
		:: atomic { asleep[me] && slice -> asleep[me] = 0 }
#endif
		fi;
#ifndef BUG_FORGETS_OTHERS
		mark = 1;               /* there may be other sleepers: the lock is taken with the sign */
#endif
		goto again;
locked:
		died = 0;
		seen = 0;
		if
		:: atomic { kills < DEATHS -> kills++; owed = (owed || !passes); goto die }
		:: atomic { owed = 0; inside[me] = 0; /* told, and leaves: exchange */
			old = sleepers; holder = 0; sleepers = 0; passes = 0 }
		fi;
		if
		:: DIE
		:: atomic { old -> old = 0 }; wake_one()
		:: atomic { !old -> skip }
		fi;
		rounds++
	od;
	atomic { through++; goto end };
die:
	atomic { dead[me] = 1; seen = 0; old = 0; mark = 0; pass = 0; died = 0; rounds = 0; through++ };
end:
	skip
}

proctype monitor()
{
	timeout;
#if SLICES
	slice = 1;
	timeout;
#endif
	assert(through == T);
}

init
{
	atomic {
		select(kills : 0 .. DEATHS); /* how many of the deaths are spent already: a death that may still come would hide a hang */
		run thread(1); run thread(2);
#if T > 2
		run thread(3);
#endif
		run monitor()
	}
}
