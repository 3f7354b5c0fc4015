#!/bin/sh
# Pins the images of compose.yaml by their digests, because a tag may be another image tomorrow. Run it again to move to
# what the tags are now. An image whose registry does not answer stays as it is, and the exit code is 1.
set -eu
cd "$(dirname "$0")"
failed=0
for image in $(sed -n 's/^ *image: \([a-z][^@ ]*\).*/\1/p' compose.yaml | sort -u); do
  # Some versions ignore a --format for the digest alone.
  digest=$(docker buildx imagetools inspect "$image" | sed -n 's/^Digest: *//p') || digest=
  case $digest in
    sha256:*) sed -i "s|^\( *image: $image\)\(@.*\)\{0,1\}\$|\1@$digest|" compose.yaml && echo "$image@$digest" ;;
    *) echo "$image is not pinned: its registry did not answer" >&2 && failed=1 ;;
  esac
done
exit "$failed"
