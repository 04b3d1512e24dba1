// The program's first instructions, before the C library's. A static one takes settings from the environment
// before main (GLIBC_TUNABLES, MALLOC_TOP_PAD_, LD_LIBRARY_PATH), and here that is the image's: some of them
// end any program. So the C library starts with an empty environment, and the image's is kept for the job.
//
// Nothing is relocated or initialised yet: no call into a library, no thread-local variable.

#include <cstddef>

#include "glue/environment.hpp"

extern "C" {

int program(int argc, char** argv) asm("main");
[[noreturn]] int begin_library(int (*main)(int, char**), int argc, char** argv, void (*init)(),
                               void (*fini)(), void (*loader_fini)(),
                               void* stack_end) asm("__libc_start_main");

// The kernel leaves argc, the arguments, the environment and the auxiliary vector on the stack, one after the
// other; the C library finds each behind the one before.
[[noreturn]] __attribute__((used, no_stack_protector)) void glue_begin(char** stack) {
  const auto argc = reinterpret_cast<std::ptrdiff_t>(*stack);
  char** const arguments = stack + 1;
  char** const environment = arguments + argc + 1;
  glidepod::glue::of_the_image = environment;
  char** auxiliary = environment;
  while (*auxiliary++ != nullptr) {
  }
  std::ptrdiff_t words = 0;
  for (; auxiliary[words] != nullptr; words += 2) {  // AT_NULL
  }
  words += 2;
  // volatile: or a compiler makes calls of memcpy of it
  char* volatile* const vector = static_cast<char* volatile*>(
      __builtin_alloca(static_cast<std::size_t>(argc + 2 + words) * sizeof(char*)));
  for (std::ptrdiff_t i = 0; i < argc; ++i) vector[i] = arguments[i];
  vector[argc] = nullptr;
  vector[argc + 1] = nullptr;
  for (std::ptrdiff_t i = 0; i < words; ++i) vector[argc + 2 + i] = auxiliary[i];
  begin_library(program, static_cast<int>(argc), const_cast<char**>(vector), nullptr, nullptr, nullptr,
                stack);
}
}

#if defined(__x86_64__)
asm(R"(
.text
.globl glue_start
.type glue_start, @function
glue_start:
  xor %ebp, %ebp
  mov %rsp, %rdi
  and $-16, %rsp
  call glue_begin
  hlt
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl glue_start
.type glue_start, %function
glue_start:
  mov x29, #0
  mov x30, #0
  mov x0, sp
  bl glue_begin
  brk #0
)");
#else
#error "how this architecture's programs start is not known here"
#endif
