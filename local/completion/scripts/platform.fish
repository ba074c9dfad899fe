# fish completion of platform. Load it with: platform completion fish | source
function __platform_words
	set -l typed (commandline -opc)
	set -l current (commandline -ct)
	set -l program (string replace -r '^~' $HOME -- $typed[1])
	set -l answer ($program completion words -- $typed[2..-1] $current 2>/dev/null)
	set -l directive $answer[-1]
	for one in $answer[1..-2]
		echo $one
	end
	if test "$directive" = ':0'
		__fish_complete_path $current
	end
end
complete -c platform -f -a '(__platform_words)'
