// SPDX-License-Identifier: Apache-2.0
// A document of libxml2. Planted: the root of a document that was not made is used.
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdio.h>

static int count_children(xmlDocPtr document) {
    xmlNodePtr root = xmlDocGetRootElement(document);
    int count = 0;
#ifdef RIGHT
    if (!root) return -1;
#endif
    for (xmlNodePtr child = root->children; child; child = child->next)
        count += child->type == XML_ELEMENT_NODE;
    return count;
}

static void be_quiet(void *context, const char *message, ...) {
    (void)context, (void)message;
}

int main(void) {
    static const char text[] = "<shelf><book/><book/><cup/></shelf>";
    xmlSetGenericErrorFunc(NULL, be_quiet);
    xmlDocPtr document = xmlReadMemory(text, sizeof text - 1, "shelf.xml", NULL, XML_PARSE_NOERROR);
    int count = count_children(document);
    xmlFreeDoc(document);
    xmlCleanupParser();
    if (count < 0) return 1;
    printf("%d things\n", count);
    return 0;
}
