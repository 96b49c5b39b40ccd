/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PARENT_DIES: kill -9 of the parent, at any step. From then on none of its threads takes another step; each worker goes on, until the
 * kernel has killed it too, which may be at any later step (life_line.pml shows that it comes). Included by the models of boards and rings.
 */
bit gone;

#ifdef BUG_NO_LIFELINE           /* nothing but the shared memory would end a worker */
#define ORPHANED false
#else
#define ORPHANED gone
#endif

#ifdef PARENT_DIES
#define UNLESS_GONE unless { gone }
#define RUN_KILLER run killer()
#else
#define UNLESS_GONE
#define RUN_KILLER skip
#endif

proctype killer()
{
	gone = 1
}
