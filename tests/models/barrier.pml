/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The barrier (drover/sync/barrier.*): PARTIES members that arrive ROUNDS times, each of which may be killed at any step, and one who resets it
 * RESETS times. All that changes together is one word: generation, how many have arrived, broken. Who waits looks for dead members, and
 * may give up (GIVE_UP); sleeping is left out: who waits looks again.
 *
 * Checked: it opens only when as many have arrived in that generation as there are parties, and did not withdraw; nobody waits for ever with a dead
 * member in the list; it does not stay broken by a death that a reset has made forgotten.
 */
#ifndef PARTIES
#define PARTIES 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef RESETS
#define RESETS 1
#endif
#ifndef GIVE_UP
#define GIVE_UP 0
#endif

/* the word */
byte generation, arrived;
bit broken;

bit member[PARTIES + 1], dead[PARTIES + 1];
byte here;                  /* threads that count as arrived in this generation */
byte kills, over;           /* over: members that have ended */
bit listed_dead;            /* a dead one is in the list */

#define DIE atomic { kills < DEATHS -> kills++; goto die }

inline next_generation() { generation++; arrived = 0; broken = 0; here = 0 }

proctype party(byte me)
{
	byte mine, rounds, i, seen;

	do
	:: rounds == ROUNDS -> break
	:: rounds < ROUNDS ->
		if
		:: DIE
		:: atomic { broken -> goto out }
		:: atomic { !broken && arrived + 1 >= PARTIES ->
			here++;
			assert(here == PARTIES);
			next_generation();
			goto passed }
		:: atomic { !broken && arrived + 1 < PARTIES -> arrived++; here++; mine = generation }
		fi;
wait:
		if
		:: DIE
		:: atomic { generation != mine -> mine = 0; goto passed } /* or reset: it goes on as well */
		:: atomic { generation == mine && broken -> mine = 0; goto out }
#if GIVE_UP
		:: atomic { generation == mine && !broken -> arrived--; here--; mine = 0; goto out }
#endif
		:: atomic { generation == mine && !broken && listed_dead -> seen = generation; i = 1 };
			do              /* looks for the dead, one by one */
			:: i > PARTIES -> break
			:: i <= PARTIES ->
				if
				:: DIE
				:: atomic { !(member[i] && dead[i]) -> i++ }
				:: atomic { member[i] && dead[i] -> skip };
					if
					:: DIE
					:: atomic {
#ifdef BUG_BREAKS_ANY
						broken = 1;
#else
						if
						:: generation == seen -> broken = 1
						:: else
						fi;
#endif
						i = PARTIES + 1 }
					fi
				fi
			od;
			i = 0; seen = 0;
			goto wait
		fi;
passed:
		rounds++
	od;
out:
	if                          /* the last handle goes: no member any more */
	:: DIE
	:: atomic { member[me] = 0; over++; rounds = 0; mine = 0; goto end }
	fi;
die:
	atomic { dead[me] = 1; listed_dead = 1; over++; rounds = 0; mine = 0; i = 0; seen = 0 };
end:
	skip
}

/* resets when it is broken, or at any other time */
proctype resetter()
{
	byte n, i;
	do
	:: n == RESETS -> break
	:: n < RESETS ->
#ifdef BUG_FORGETS_LATE
		atomic { next_generation() };
#endif
		i = 1;
		do
		:: i > PARTIES -> break
		:: i <= PARTIES -> atomic {
			if
			:: dead[i] -> member[i] = 0
			:: else
			fi;
			listed_dead = (dead[1] && member[1]) || (dead[2] && member[2]);
#if PARTIES > 2
			listed_dead = listed_dead || (dead[3] && member[3]);
#endif
			i++ }
		od;
		i = 0;
#ifndef BUG_FORGETS_LATE
		atomic { next_generation() };
#endif
		n++
	:: break                /* or not */
	od
}

proctype monitor()
{
	timeout;
	/* who still waits does so for living parties that do not come, or for a dead one that a reset has made forgotten */
	assert(over == PARTIES || !listed_dead);
	assert(!broken || listed_dead)
}

init
{
	byte i;
	atomic {
		select(kills : 0 .. DEATHS);
		for (i : 1 .. PARTIES) { member[i] = 1; run party(i) };
		i = 0;
		run resetter();
		run monitor()
	}
}
