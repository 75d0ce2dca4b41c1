// SPDX-License-Identifier: Apache-2.0
// The file of a program that is about to be started: would it not bear us, or not load us? System
// calls only, a bounded number of them, nothing mapped: for children of vfork and signal handlers.
#ifndef RUNTIME_SYS_IMAGE_H
#define RUNTIME_SYS_IMAGE_H

#include <stdbool.h>

#include "format/hello.h"

// Tells why the program at `path`, or the interpreter of the script, would not be recorded: it is
// built with a sanitizer, static, privileged or foreign. NONE also for what is not known. False,
// and *found as it was, if there is no executable file.
bool image_look(int directory, const char *path, enum cairn_unrecorded *found);

// Tells the sanitizer whose runtime has such a file name; NONE: it is none.
enum cairn_unrecorded image_of_library(const char *name);

// Looks at an open file as image_look does; its position stays.
bool image_look_at_file(int file, enum cairn_unrecorded *found);

// Whether the image that this process becomes can open the file: by opening it, or, where
// capabilities that end with this image would open it, by the modes on the way. Errors other than
// refusals and absence, such as too many open files, say nothing.
bool image_can_open(const char *path);

#endif
