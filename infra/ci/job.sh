#!/bin/sh
# Signs a CI job in at a platform and, when the job ends, ends its access key. The GitHub action and the GitLab component run it. Source: ADR-0051.
#
#   job.sh begin   installs the program, signs in, and writes the kubeconfigs
#   job.sh end     ends the access key, and removes the folder
#
# All inputs are variables. Nobody puts text into this script.
#
#   PLATFORM_CI_FOLDER           an empty folder for this job alone, outside of its checkout
#   PLATFORM_CI_HOST             the platform, as at platform login; begin notes it for end
#   PLATFORM_CI_ARCHIVES         the files of a release: a URL, a folder, or the path of an archive
#   PLATFORM_CI_VERSION          the version; empty: the only version in checksums.txt
#   PLATFORM_CI_RULE             the trust rule; empty: the only rule that fits
#   PLATFORM_CI_AUTHORITY        a file with the certificate authority of the platform; empty: those of the system
#   PLATFORM_CI_VIRTUAL_CLUSTER  NAMESPACE/NAME of the virtual cluster of the kubeconfig; empty: the kubeconfig is for the platform
#
# The folder gets bin/platform, platform.kubeconfig, kubeconfig, and secrets, which lists each secret on a line of its own. Nothing secret is
# printed.
set -eu
umask 077

fail() {
	printf 'platform: %s\n' "$*" >&2
	exit 1
}

folder=${PLATFORM_CI_FOLDER:?} host=${PLATFORM_CI_HOST:-} archives=${PLATFORM_CI_ARCHIVES:-} version=${PLATFORM_CI_VERSION:-}
rule=${PLATFORM_CI_RULE:-} authority=${PLATFORM_CI_AUTHORITY:-} virtual=${PLATFORM_CI_VIRTUAL_CLUSTER:-}

# platform runs the program with a home of its own, so that other jobs of the same user neither use nor end its access key.
platform() {
	HOME="$folder/home" XDG_CONFIG_HOME="$folder/home/.config" KUBECONFIG='' "$folder/bin/platform" "$@"
}

# shown prints the place of the archives without the name and password that a URL can have.
shown() {
	case $archives in
	*://*@*) printf '%s://%s' "${archives%%://*}" "${archives#*@}" ;;
	*) printf '%s' "$archives" ;;
	esac
}

# fetch NAME copies a file of the release into the folder.
fetch() {
	case $archives in
	https://* | http://127.0.0.1:* | http://localhost:*)
		if command -v curl >/dev/null; then
			curl --fail --silent --show-error --location --proto-redir =https --globoff --output "$folder/$1" "$archives/$1"
		elif command -v wget >/dev/null; then
			wget -q -O "$folder/$1" "$archives/$1"
		else
			fail "curl or wget is needed to fetch $1"
		fi
		;;
	*://*) fail "archives must be an https URL or a path, not $(shown)" ;;
	*) cp -- "$archives/$1" "$folder/$1" ;;
	esac || fail "$(shown) has no $1 that can be read"
}

# digest FILE prints the SHA-256 of a file.
digest() {
	if command -v sha256sum >/dev/null; then
		sha256sum <"$1"
	else
		shasum -a 256 <"$1"
	fi | cut -c 1-64
}

# install fetches the archive of this machine, compares it with checksums.txt and unpacks the program.
install() {
	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) fail "there is no archive for $(uname -s): use a runner with Linux or macOS" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "there is no archive for $(uname -m): use a runner with amd64 or arm64" ;;
	esac
	wanted=${version:+platform_${version#v}_${os}_$arch.tar.gz}
	case $archives in
	*.tar.gz)
		named=${archives##*/}
		[ "${wanted:-$named}" = "$named" ] || fail "archives names $named, and this job needs $wanted"
		wanted=$named
		case $archives in
		*/*) archives=${archives%/*} ;;
		*) archives=. ;;
		esac
		;;
	esac
	archives=${archives%/}
	fetch checksums.txt
	archive='' expected='' others=''
	while read -r sum name || [ -n "$sum" ]; do
		name=${name#\*}
		case $name in
		*/*) continue ;;
		platform_*"_${os}_$arch.tar.gz") ;;
		*) continue ;;
		esac
		if [ -n "$wanted" ] && [ "$name" != "$wanted" ]; then
			others="$others $name"
			continue
		fi
		[ -z "$archive" ] || fail "checksums.txt has $archive and $name: set the version"
		archive=$name expected=$sum
	done <"$folder/checksums.txt"
	[ -n "$archive" ] || fail "checksums.txt has no ${wanted:-archive for ${os}_$arch}; it has:${others:- none for this machine}"
	fetch "$archive"
	actual=$(digest "$folder/$archive")
	[ "$actual" = "$expected" ] || fail "the SHA-256 of $archive is ${actual:-unknown}, and checksums.txt says $expected"
	mkdir "$folder/bin"
	tar -xzf "$folder/$archive" -C "$folder" "${archive%.tar.gz}/platform" || fail "$archive has no program ${archive%.tar.gz}/platform"
	mv "$folder/${archive%.tar.gz}/platform" "$folder/bin/platform"
	rm -rf "${folder:?}/$archive" "$folder/${archive%.tar.gz}"
}

begin() {
	for input in "$host" "$archives" "$version" "$rule" "$authority" "$virtual"; do
		case $input in
		*'
'*) fail 'an input has more than one line' ;;
		esac
	done
	[ -n "$host" ] || fail 'the input host is empty: name the platform'
	[ -n "$archives" ] || fail 'the input archives is empty: name the URL or the folder of a release'
	[ -z "$authority" ] || [ -f "$authority" ] || fail "certificate-authority: there is no file $authority"
	printf '%s\n' "$host" >"$folder/host"
	install
	set -- login --ci --output="$folder/platform.kubeconfig"
	[ -z "$rule" ] || set -- "$@" --rule="$rule"
	[ -z "$authority" ] || set -- "$@" --certificate-authority="$authority"
	platform "$@" -- "$host"
	cat "$(key)" >"$folder/secrets"
	printf '\n' >>"$folder/secrets"
	if [ -z "$virtual" ]; then
		cp "$folder/platform.kubeconfig" "$folder/kubeconfig"
		return
	fi
	platform kubeconfig --output="$folder/kubeconfig" -- "$virtual" "$host"
	sed -n 's/^ *token: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$folder/kubeconfig" >>"$folder/secrets"
}

# key prints the path of the access key, if the job has signed in.
key() {
	find "$folder/home" -type f -name access.key 2>/dev/null || true
}

# end ends the access key. The platform then refuses everything that was made with it, such as the token of the kubeconfig.
end() {
	[ -d "$folder" ] || return 0
	status=0
	if [ -n "$(key)" ]; then
		platform logout -- "$(cat "$folder/host")" || status=$?
	fi
	rm -rf "${folder:?}"
	[ "$status" = 0 ] || fail 'the access key of the job was not ended: it works until its lifetime is over'
}

case ${1:-} in
begin) begin ;;
end) end ;;
*)
	echo 'usage: job.sh begin|end' >&2
	exit 2
	;;
esac
