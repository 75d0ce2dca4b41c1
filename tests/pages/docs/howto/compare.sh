# SPDX-License-Identifier: Apache-2.0
server_here app && recorded server.15423.cairn a1.cairn a2.cairn a3.cairn a4.cairn a5.cairn &&
    sed 's/std::shared_ptr<Session> session;/std::weak_ptr<Session> session;/' server.cc >mended.cc && mkdir mended &&
    cp mended.cc mended/server.cc && (cd mended && g++ -O2 -g -o ../server server.cc) &&
    recorded server.19526.cairn b1.cairn b2.cairn b3.cairn b4.cairn b5.cairn || return
# a program that marks when it is warm
cat >marks.c <<'END' && gcc -g -O0 -I"$SOURCE_DIR/include" -o marks marks.c && cairn run -q -o app.cairn ./marks && cp app.cairn server.cairn
#include <cairn/cairn.h>
#include <stdlib.h>
static void *volatile kept[99];
int main(void) {
    for (int i = 0; i < 50; i++) kept[i] = malloc(4000);
    cairn_mark("warm");
    for (int i = 50; i < 99; i++) kept[i] = malloc(4000);
    return 0;
}
END
stands app.cairn@10s app.cairn@1ms
