# SPDX-License-Identifier: Apache-2.0
server_here app && cp "$SOURCE_DIR/tests/pages/cairn.sh" cairn-0.2.0-linux-x86_64 &&
    echo 'print([str(i) for i in range(9)][0])' >script.py
# what is built is there; a check within the check is only looked at
make() {
    case $1 in
    try) env "${2:-A=}" "$SOURCE_DIR/dev/try.sh" ;;
    *) command make -n BUILT=1 -C "$SOURCE_DIR" "$@" ;;
    esac
}
