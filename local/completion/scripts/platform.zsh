#compdef platform
# zsh completion of platform. Load it with: source <(platform completion zsh)
_platform() {
	local -a answer described
	local one directive
	answer=("${(@f)$("${(Q)words[1]/#\~/$HOME}" completion words -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
	directive=${answer[-1]}
	for one in "${(@)answer[1,-2]}"; do
		described+=("${${one%%$'\t'*}//:/\\:}:${one#*$'\t'}")
	done
	(( $#described )) && _describe -t words platform described
	[[ $directive == ':0' ]] && _files -P "${${(M)words[CURRENT]#--*=}}"
	return 0
}
if [[ $funcstack[1] == _platform ]]; then
	_platform "$@"
else
	compdef _platform platform
fi
