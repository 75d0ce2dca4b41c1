# SPDX-License-Identifier: Apache-2.0
needs java javac jar && cat >Small.java <<'END' && cat >Waits.java <<'END2' && javac Small.java Waits.java || return
import java.util.zip.Deflater;

public class Small {
    static Deflater zip() { return new Deflater(); }
    public static void main(String[] words) { for (int i = 0; i < 50; i++) { Deflater one = zip(); if (i % 2 == 0) one.end(); } }
}
END
public class Waits {
    static java.util.zip.Deflater last;
    public static void main(String[] words) throws Exception {
        for (int i = 0; System.in.available() == 0; i++) {
            last = new java.util.zip.Deflater();
            Thread.sleep(5);
            last.end();
        }
    }
}
END2
jar cfe program.jar Small Small.class || return
# one that works on until the page's directory goes
mkfifo .held && exec 8<>.held
java Waits <&8 &
DOC_PID=$!
until grep -q libzip "/proc/$DOC_PID/maps"; do sleep 0.05; done
