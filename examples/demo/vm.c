/* SPDX-License-Identifier: MIT */
/*
 * vm.c: the interpreter.
 *
 * A verb's call is a frame in struct vm and not a call of C, so that a computation can stop in the
 * middle of nested verbs and go on later, on another thread.
 *
 * How it is traced. Verbs are spans of the thread with their object:verb as a dynamic name. Spans of
 * a thread must nest, and a suspended verb is not on any thread: so vm_run() opens a span for every
 * frame that is there when it starts, and closes those that are there when it stops. The async span
 * of the task (task.c) is what holds the pieces together. A builtin's result is known only at its
 * end: that is why it is an argument of KYMO_END, and the span is made by hand.
 */
#include "vm.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "builtin.h"

#include <kymo/kymo.h>

_Thread_local const char *volatile vm_current_verb;

static struct vm_frame *top_frame(struct vm *vm)
{
	return &vm->frames[vm->frames_count - 1];
}

static void push(struct vm *vm, int64_t value)
{
	assert(vm->stack_count < VM_STACK_MAX);
	vm->stack[vm->stack_count++] = value;
}

static int64_t pop(struct vm *vm)
{
	assert(vm->stack_count > 0);
	return vm->stack[--vm->stack_count];
}

static void open_span(const struct vm *vm, const struct verb *verb, bool resumed,
		      struct vm_work *work)
{
	KYMO_BEGIN_DYN("verb", verb->name, "task", vm->task, "resumed", resumed);
	work->verb_spans++;
	vm_current_verb = verb->name;
}

static void close_span(const struct vm *vm)
{
	KYMO_END("verb");
	vm_current_verb = vm->frames_count > 1 ? vm->frames[vm->frames_count - 2].verb->name : NULL;
}

static void push_frame(struct vm *vm, const struct verb *verb)
{
	assert(vm->frames_count < VM_FRAMES_MAX && vm->stack_count >= verb->argc);
	vm->frames[vm->frames_count++] = (struct vm_frame){.verb = verb};
}

static void arith(struct vm *vm, int64_t operator)
{
	const int64_t right = pop(vm);
	const int64_t left = pop(vm);
	switch (operator) {
	case '+':
		push(vm, left + right);
		break;
	case '-':
		push(vm, left - right);
		break;
	case '%':
		push(vm, right ? left % right : 0);
		break;
	default:
		assert(false && "an operator that verb.c does not make");
	}
}

static void begin_loop(struct vm_frame *frame, int64_t turns, int64_t end)
{
	if (turns <= 0) {
		frame->next = (int)end;
		return;
	}
	assert(frame->loops_count < VM_LOOPS_MAX);
	frame->loops[frame->loops_count++] = turns;
}

static void next_turn(struct vm_frame *frame, int64_t body)
{
	if (--frame->loops[frame->loops_count - 1] > 0)
		frame->next = (int)body;
	else
		frame->loops_count--;
}

static void call_builtin(struct vm *vm, const struct builtin *builtin, struct vm_work *work)
{
	int64_t argv[BUILTIN_ARGS_MAX] = {0};
	for (int i = builtin->argc - 1; i >= 0; i--)
		argv[i] = pop(vm);
	KYMO_BEGIN_DYN("builtin", builtin->name, "argc", builtin->argc, "first", argv[0]);
	const int64_t result = builtin->call(vm, argv);
	KYMO_END("builtin", "result", result);
	if (builtin->pushes)
		push(vm, result);
	work->builtin_calls++;
}

static void step(struct vm *vm, const struct op *op, struct vm_work *work)
{
	struct vm_frame *frame = top_frame(vm);
	switch (op->code) {
	case OP_PUSH:
		push(vm, op->operand);
		break;
	case OP_LOAD:
		push(vm, frame->locals[op->operand]);
		break;
	case OP_STORE:
		frame->locals[op->operand] = pop(vm);
		break;
	case OP_ARITH:
		arith(vm, op->operand);
		break;
	case OP_DROP:
		pop(vm);
		break;
	case OP_TIMES:
		begin_loop(frame, pop(vm), op->operand);
		break;
	case OP_NEXT:
		next_turn(frame, op->operand);
		break;
	case OP_BUILTIN:
		call_builtin(vm, op->builtin, work);
		break;
	case OP_CALL:
		push_frame(vm, op->callee);
		open_span(vm, op->callee, false, work);
		break;
	case OP_RETURN:
		close_span(vm);
		vm->frames_count--;
		break;
	}
}

void vm_start(struct vm *vm, uint64_t task, uint64_t seed, const struct verb *verb,
	      const int64_t *args)
{
	*vm = (struct vm){.task = task, .random = seed};
	for (int i = 0; i < verb->argc; i++)
		push(vm, args[i]);
	push_frame(vm, verb);
}

enum vm_status vm_run(struct vm *vm, struct db_transaction *transaction, struct vm_work *work)
{
	vm->transaction = transaction;
	vm->suspend_ms = 0;
	for (int i = 0; i < vm->frames_count; i++)
		open_span(vm, vm->frames[i].verb, vm->frames[i].next > 0, work);
	while (vm->frames_count > 0 && vm->suspend_ms == 0) {
		struct vm_frame *frame = top_frame(vm);
		step(vm, &frame->verb->code[frame->next++], work);
	}
	for (int i = vm->frames_count; i > 0; i--)
		close_span(vm);
	vm_current_verb = NULL;
	return vm->frames_count > 0 ? VM_SUSPENDED : VM_DONE;
}

int64_t vm_result(const struct vm *vm)
{
	return vm->stack_count > 0 ? vm->stack[vm->stack_count - 1] : 0;
}
