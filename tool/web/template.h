// SPDX-License-Identifier: Apache-2.0
// The page without its data (web/report.html, made by web/build.mjs), as bytes of this program.
#ifndef TOOL_WEB_TEMPLATE_H
#define TOOL_WEB_TEMPLATE_H

extern const char web_template[], web_template_end[];

#endif
