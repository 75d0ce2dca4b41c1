// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/stub.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "tool/proc/process.h"

#if defined(__x86_64__)

#define STUB_MAGIC UINT64_C(0x6b63616274736c61)
#define NO_FILE INT64_C(-1)

enum {
    CODE_ALIGN = 64,
    RESTART_FIRST = 512,   // ERESTARTSYS, ERESTARTNOINTR and ERESTARTNOHAND
    RESTART_LAST = 514,    //
    RESTART_BLOCK = 516,   // ERESTART_RESTARTBLOCK: by a system call of its own
    CALL_RESTART = 219,    // restart_syscall
    CALL_BYTES = 2,        // of the instruction that makes system calls
    FLAGS_LEFT = 0x10100,  // of single steps
    RESET_ON_FORK = 1,
};

// The words that the code reads.
struct stub_values {
    uint64_t magic;
    uint64_t signal;
    uint64_t errno_at, errno_value;
    int64_t file;
    uint64_t vectors, is_plain;  // is_plain: in the form of fxsave
    uint64_t stack, stack_bytes;
    uint64_t has_scheduling;
    struct scheduling scheduling;
    uint64_t mask;
    uint64_t flags, rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15,
        rip;
    struct scheduling flagged;  // if the thread may not give up the flag that it got
    uint64_t room, room_bytes;
};
#define WORD_IS(field, number)                                                                     \
    _Static_assert(offsetof(struct stub_values, field) == (number) * sizeof(uint64_t), #field)
WORD_IS(signal, 1);
WORD_IS(errno_at, 2);
WORD_IS(file, 4);
WORD_IS(vectors, 5);
WORD_IS(stack, 7);
WORD_IS(has_scheduling, 9);
WORD_IS(scheduling, 10);
WORD_IS(mask, 16);
WORD_IS(flags, 17);
WORD_IS(rsp, 25);
WORD_IS(rip, 34);
WORD_IS(flagged, 35);
WORD_IS(room, 41);

// The return address of functions is stub_code_return, with the result in rax. Neither gettid nor
// tkill of a signal that the process ignores does anything without a tracer.
//
// Memory is the thread's to unmap from the moment at which it is mapped, and never twice, since
// other threads may have mapped some there: until the values have its address, its registers do,
// and once it is unmapped, rbp has what the values still have. So are files, of which rbp has the
// complement, which is no address.
__asm__(".pushsection .rodata\n"
        ".macro VALUE instruction, number, register\n"
        "  \\instruction (stub_code_values + 8 * \\number)(%rip), \\register\n"
        ".endm\n"
        ".macro UNMAP number\n"  // address and bytes
        "  VALUE mov, \\number, %rdi\n"
        "  test %rdi, %rdi\n"
        "  jz 5f\n"
        "  cmp %rdi, %rbp\n"
        "  je 5f\n"
        "  mov (stub_code_values + 8 * \\number + 8)(%rip), %rsi\n"
        "  mov $11, %eax\n"
        "  syscall\n"
        "5:\n"
        ".endm\n"
        ".macro LABEL name\n"
        "  .globl \\name\n"
        "  .hidden \\name\n"
        "\\name:\n"
        ".endm\n"
        ".balign 64\n"
        "LABEL stub_code\n"
        "  syscall\n"
        "  jmp stub_code_leave\n"
        "LABEL stub_code_map\n"
        "  syscall\n"
        "  VALUE cmp, 7, %rax\n"
        "  je stub_code_leave\n"
        "  VALUE cmp, 41, %rax\n"
        "  je stub_code_leave\n"
        "  test %rax, %rax\n"
        "  js stub_code_leave\n"
        "  mov %rax, %rdi\n"
        "  mov $11, %eax\n"  // munmap, of as much
        "  syscall\n"
        "  jmp stub_code_leave\n"
        "LABEL stub_code_unmap\n"
        "  syscall\n"
        "  mov %rdi, %rbp\n"
        "  jmp 0f\n"
        "LABEL stub_code_open\n"
        "  syscall\n"
        "  VALUE cmp, 4, %rax\n"
        "  je stub_code_leave\n"
        "  test %rax, %rax\n"
        "  js stub_code_leave\n"
        "  mov %eax, %edi\n"
        "  mov $3, %eax\n"  // close
        "  syscall\n"
        "  jmp stub_code_leave\n"
        "LABEL stub_code_close\n"
        "  syscall\n"
        "  mov %rdi, %rbp\n"
        "  not %rbp\n"
        "  jmp 0f\n"
        "LABEL stub_code_return\n"
        "  mov %rax, %rbx\n"
        "  mov $186, %eax\n"  // gettid
        "  syscall\n"
        "LABEL stub_code_stepped\n"
        "  VALUE mov, 1, %rsi\n"
        "  test %esi, %esi\n"
        "  jz stub_code_leave\n"
        "  mov %eax, %edi\n"
        "  mov $200, %eax\n"  // tkill
        "  syscall\n"
        "LABEL stub_code_signalled\n"
        "LABEL stub_code_leave\n"
        "  xor %ebp, %ebp\n"
        "0:\n"
        "  VALUE mov, 2, %rax\n"
        "  test %rax, %rax\n"
        "  jz 1f\n"
        "  VALUE mov, 3, %rcx\n"
        "  mov %ecx, (%rax)\n"
        "1:\n"
        "  VALUE mov, 4, %rdi\n"
        "  test %rdi, %rdi\n"
        "  js 2f\n"
        "  mov %rdi, %rax\n"
        "  not %rax\n"
        "  cmp %rax, %rbp\n"
        "  je 2f\n"
        "  mov $3, %eax\n"
        "  syscall\n"
        "2:\n"
        "  VALUE mov, 5, %rcx\n"
        "  test %rcx, %rcx\n"
        "  jz 4f\n"
        "  VALUE mov, 6, %rax\n"
        "  test %rax, %rax\n"
        "  jnz 3f\n"
        "  mov $-1, %eax\n"
        "  mov %eax, %edx\n"
        "  xrstor64 (%rcx)\n"
        "  jmp 4f\n"
        "3:\n"
        "  fxrstor64 (%rcx)\n"
        "4:\n"
        // from here on on the program's stack, beyond its red zone, and what is pushed onto that
        "  VALUE mov, 25, %rsp\n"
        "  lea -128(%rsp), %rsp\n"
        "  UNMAP 7\n"
        "  UNMAP 41\n"
        "  VALUE mov, 9, %rax\n"
        "  test %rax, %rax\n"
        "  jz 6f\n"
        "  xor %edi, %edi\n"
        "  VALUE lea, 10, %rsi\n"
        "  xor %edx, %edx\n"
        "  mov $314, %eax\n"  // sched_setattr
        "  syscall\n"
        "  test %eax, %eax\n"
        "  jz 6f\n"
        "  VALUE lea, 35, %rsi\n"
        "  mov $314, %eax\n"
        "  syscall\n"
        "6:\n"
        "  mov $2, %edi\n"  // SIG_SETMASK
        "  VALUE lea, 16, %rsi\n"
        "  xor %edx, %edx\n"
        "  mov $8, %r10d\n"
        "  mov $14, %eax\n"  // rt_sigprocmask
        "  syscall\n"
        "  pushq (stub_code_values + 8 * 17)(%rip)\n"
        "  popfq\n"
        "  VALUE mov, 18, %rax\n"
        "  VALUE mov, 19, %rbx\n"
        "  VALUE mov, 20, %rcx\n"
        "  VALUE mov, 21, %rdx\n"
        "  VALUE mov, 22, %rsi\n"
        "  VALUE mov, 23, %rdi\n"
        "  VALUE mov, 24, %rbp\n"
        "  VALUE mov, 25, %rsp\n"
        "  VALUE mov, 26, %r8\n"
        "  VALUE mov, 27, %r9\n"
        "  VALUE mov, 28, %r10\n"
        "  VALUE mov, 29, %r11\n"
        "  VALUE mov, 30, %r12\n"
        "  VALUE mov, 31, %r13\n"
        "  VALUE mov, 32, %r14\n"
        "  VALUE mov, 33, %r15\n"
        "  jmpq *(stub_code_values + 8 * 34)(%rip)\n"
        ".balign 8\n"
        "LABEL stub_code_values\n"
        ".popsection\n");

extern __attribute__((visibility("hidden"))) const uint8_t stub_code[], stub_code_map[],
    stub_code_unmap[], stub_code_open[], stub_code_close[], stub_code_return[], stub_code_stepped[],
    stub_code_signalled[], stub_code_leave[], stub_code_values[];

static size_t code_bytes(void) {
    return (size_t)(stub_code_values - stub_code);
}

static size_t stub_bytes(void) {
    return code_bytes() + sizeof(struct stub_values);
}

static uint64_t address_of(const struct stub *stub, const uint8_t *label) {
    return stub->place + (uint64_t)(label - stub_code);
}

// The end of the segment that is executed, in the memory of a module; 0: it has none.
static uint64_t code_end(const struct remote *remote, uint64_t module_start) {
    enum { SEGMENTS_MAX = 64 };
    Elf64_Ehdr header;
    uint64_t first = UINT64_MAX, end = 0;
    if (!remote_read(remote, module_start, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phnum > SEGMENTS_MAX)
        return 0;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        if (!remote_read(remote, module_start + header.e_phoff + i * sizeof segment, &segment,
                         sizeof segment))
            return 0;
        if (segment.p_type != PT_LOAD) continue;
        if (segment.p_vaddr < first) first = segment.p_vaddr;
        bool is_code = (segment.p_flags & (PF_R | PF_W | PF_X)) == (PF_R | PF_X);
        if (is_code && segment.p_memsz == segment.p_filesz) end = segment.p_vaddr + segment.p_memsz;
    }
    first &= ~(process_page_bytes() - 1);
    return end ? module_start + end - first : 0;
}

bool stub_find(uint64_t *place, const struct remote *remote, uint64_t module_start) {
    uint64_t end = module_start ? code_end(remote, module_start) : 0;
    uint64_t page_end = (end + process_page_bytes() - 1) & ~(process_page_bytes() - 1);
    uint64_t at = (end + CODE_ALIGN - 1) & ~(uint64_t)(CODE_ALIGN - 1);
    uint8_t byte;
    bool has_room = end && at < page_end && page_end - at >= stub_bytes() &&
                    remote_read(remote, page_end - 1, &byte, sizeof byte);
    *place = has_room ? at : 0;
    return has_room;
}

bool stub_find_last(uint64_t *place, const struct remote *remote) {
    uint64_t kernel_code = 0;
    process_auxiliary(remote->pid, AT_SYSINFO_EHDR, &kernel_code);
    return stub_find(place, remote, kernel_code);
}

bool stub_is_busy(uint64_t place, const struct remote *remote, const struct threads *threads) {
    struct stub_values values;
    if (!place || !remote_read(remote, place + code_bytes(), &values, sizeof values) ||
        values.magic != STUB_MAGIC)
        return false;
    for (size_t i = 0; i < threads->stopped.count; i++) {
        const struct registers *registers = &threads->stopped.items[i].registers;
        if (registers_pc(registers) - place < code_bytes() ||
            registers_stack(registers) - values.stack < values.stack_bytes)
            return true;
    }
    return false;
}

// As the kernel would have it where the program goes on.
static void restart_system_call(struct stub_values *values, const struct user_regs_struct *words) {
    int64_t error = -(int64_t)words->rax;
    bool is_restarted = error >= RESTART_FIRST && error <= RESTART_LAST;
    if ((int64_t)words->orig_rax < 0 || (!is_restarted && error != RESTART_BLOCK)) return;
    values->rip -= CALL_BYTES;
    values->rax = is_restarted ? words->orig_rax : CALL_RESTART;
}

static struct stub_values values_of(const struct user_regs_struct *words, uint64_t mask) {
    struct stub_values values = {.magic = STUB_MAGIC,
                                 .file = NO_FILE,
                                 .mask = mask,
                                 .flags = words->eflags & ~(uint64_t)FLAGS_LEFT,
                                 .rax = words->rax,
                                 .rbx = words->rbx,
                                 .rcx = words->rcx,
                                 .rdx = words->rdx,
                                 .rsi = words->rsi,
                                 .rdi = words->rdi,
                                 .rbp = words->rbp,
                                 .rsp = words->rsp,
                                 .r8 = words->r8,
                                 .r9 = words->r9,
                                 .r10 = words->r10,
                                 .r11 = words->r11,
                                 .r12 = words->r12,
                                 .r13 = words->r13,
                                 .r14 = words->r14,
                                 .r15 = words->r15,
                                 .rip = words->rip};
    restart_system_call(&values, words);
    return values;
}

bool stub_write(struct stub *stub, uint64_t place, const struct remote *remote,
                const struct registers *registers, uint64_t signal_mask) {
    const struct stub_values values = values_of(&registers->words, signal_mask);
    stub->place = 0;
    stub->remote = remote;
    if (!place || stub_bytes() > sizeof stub->before ||
        !remote_read(remote, place, stub->before, stub_bytes()) ||
        !remote_write(remote, place, stub_code, code_bytes()))
        return false;
    stub->place = place;
    stub->back = *registers;
    stub->back.words.rip = address_of(stub, stub_code_leave);
    registers_drop_system_call(&stub->back);
    if (remote_write(remote, place + code_bytes(), &values, sizeof values)) return true;
    stub_erase(stub);
    return false;
}

void stub_erase(struct stub *stub) {
    if (stub->place) remote_write(stub->remote, stub->place, stub->before, stub_bytes());
    stub->place = 0;
}

uint64_t stub_entry(const struct stub *stub, enum stub_entry entry) {
    static const uint8_t *const labels[] = {
        [STUB_SYSTEM_CALL] = stub_code, [STUB_MAP] = stub_code_map,
        [STUB_UNMAP] = stub_code_unmap, [STUB_OPEN] = stub_code_open,
        [STUB_CLOSE] = stub_code_close, [STUB_RETURN] = stub_code_return};
    return address_of(stub, labels[entry]);
}

bool stub_is_returned(const struct stub *stub, const struct registers *now, bool by_signal) {
    return registers_pc(now) ==
           address_of(stub, by_signal ? stub_code_signalled : stub_code_stepped);
}

uint64_t stub_result(const struct registers *now) {
    return now->words.rbx;
}

static void set(const struct stub *stub, size_t at, const void *value, size_t bytes) {
    if (stub->place) remote_write(stub->remote, stub->place + code_bytes() + at, value, bytes);
}

#define SET(stub, field, value)                                                                    \
    set((stub), offsetof(struct stub_values, field), &(value),                                     \
        sizeof((struct stub_values *)NULL)->field)

void stub_set_signal(const struct stub *stub, int signal) {
    const uint64_t value = (uint64_t)signal;
    SET(stub, signal, value);
}

void stub_set_stack(const struct stub *stub, uint64_t start, uint64_t bytes) {
    SET(stub, stack_bytes, bytes);
    SET(stub, stack, start);
}

void stub_set_room(const struct stub *stub, uint64_t start, uint64_t bytes) {
    SET(stub, room_bytes, bytes);
    SET(stub, room, start);
}

void stub_set_vectors(const struct stub *stub, uint64_t at, int kind) {
    const uint64_t is_plain = kind == NT_PRFPREG;
    SET(stub, is_plain, is_plain);
    SET(stub, vectors, at);
}

void stub_set_errno(const struct stub *stub, uint64_t at, int value) {
    const uint64_t word = (uint32_t)value;
    SET(stub, errno_value, word);
    SET(stub, errno_at, at);
}

void stub_set_file(const struct stub *stub, int64_t file) {
    SET(stub, file, file);
}

// A thread may give up a priority, but not the flag that it got with it, unless it is privileged or
// the guard (sched_boost.c) came first.
void stub_set_scheduling(const struct stub *stub, const struct scheduling *usual) {
    struct scheduling flagged = *usual;
    const uint64_t has_scheduling = 1;
    flagged.flags |= RESET_ON_FORK;
    SET(stub, flagged, flagged);
    SET(stub, scheduling, *usual);
    SET(stub, has_scheduling, has_scheduling);
}

#else

bool stub_find(uint64_t *place, const struct remote *remote, uint64_t module_start) {
    (void)remote, (void)module_start;
    *place = 0;
    return false;
}

bool stub_find_last(uint64_t *place, const struct remote *remote) {
    return stub_find(place, remote, 0);
}

bool stub_is_busy(uint64_t place, const struct remote *remote, const struct threads *threads) {
    (void)place, (void)remote, (void)threads;
    return false;
}

bool stub_write(struct stub *stub, uint64_t place, const struct remote *remote,
                const struct registers *registers, uint64_t signal_mask) {
    (void)place, (void)remote, (void)registers, (void)signal_mask;
    stub->place = 0;
    return false;
}

void stub_erase(struct stub *stub) {
    (void)stub;
}

uint64_t stub_entry(const struct stub *stub, enum stub_entry entry) {
    (void)entry;
    return stub->place;
}

bool stub_is_returned(const struct stub *stub, const struct registers *now, bool by_signal) {
    (void)stub, (void)now, (void)by_signal;
    return false;
}

uint64_t stub_result(const struct registers *now) {
    return (uint64_t)registers_result(now);
}

void stub_set_signal(const struct stub *stub, int signal) {
    (void)stub, (void)signal;
}

void stub_set_stack(const struct stub *stub, uint64_t start, uint64_t bytes) {
    (void)stub, (void)start, (void)bytes;
}

void stub_set_room(const struct stub *stub, uint64_t start, uint64_t bytes) {
    (void)stub, (void)start, (void)bytes;
}

void stub_set_vectors(const struct stub *stub, uint64_t at, int kind) {
    (void)stub, (void)at, (void)kind;
}

void stub_set_errno(const struct stub *stub, uint64_t at, int value) {
    (void)stub, (void)at, (void)value;
}

void stub_set_file(const struct stub *stub, int64_t file) {
    (void)stub, (void)file;
}

void stub_set_scheduling(const struct stub *stub, const struct scheduling *usual) {
    (void)stub, (void)usual;
}

#endif
