#pragma once

#include <span>

namespace glidepod::glue {

// What the job's child reads of a program that the kernel has not executed, to say why. All of it by the
// job's own rights, hence without anything that it could not read itself, and without memory from the heap.

// As POSIX wants it of shells: no NUL in the first line. So a program of another machine is not text.
bool is_text(const char* file);

// The interpreter that a script names in its first line, with a NUL at its end; nothing where it names none.
// The kernel takes the same blanks and the same length (fs/binfmt_script.c).
void read_interpreter(const char* file, std::span<char> interpreter);

// Whether EIO is what the kernel says of this program on every node (fs/binfmt_elf.c, elf_read(): a short
// read is one): an ELF file that ends before what it says is in it, or that names a loader without a header;
// or a script for one. Also of a file that this user may not read, of which nobody here can tell.
bool is_cut_short(const char* file);

}  // namespace glidepod::glue
