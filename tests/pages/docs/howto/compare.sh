# SPDX-License-Identifier: Apache-2.0
server_here app && recorded server.15423.cairn a1.cairn a2.cairn a3.cairn a4.cairn a5.cairn &&
    sed 's/std::shared_ptr<Session> session;/std::weak_ptr<Session> session;/' server.cc >mended.cc && mkdir mended &&
    cp mended.cc mended/server.cc && (cd mended && g++ -O2 -g -o ../server server.cc) &&
    recorded server.19526.cairn b1.cairn b2.cairn b3.cairn b4.cairn b5.cairn
